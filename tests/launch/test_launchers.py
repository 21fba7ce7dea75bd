"""Commands by Slurm and on Ray: what is asked for, what comes back, and runs that go on."""

import argparse
import re
import signal
import subprocess
import sys
import time
from datetime import timedelta
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file

from tests.launch.grids import SHORT, quick, runs_of
from tests.runs.tiny import write_recipe
from textmill.cli.grid import add_launcher, asked_launcher
from textmill.cli.main import main
from textmill.errors import MissingExtraError, UserError
from textmill.launch import slurm as slurm_module
from textmill.launch.launcher import launcher_of
from textmill.launch.local import Local
from textmill.launch.ray import Ray, RayJobs
from textmill.launch.slurm import Slurm, SlurmJobs
from textmill.run_folder.folder import RunFolder

SBATCH = """#!/bin/sh
cp "$1" {folder}/batch.sh
echo "Submitted batch job 4711"
"""


def asked(*words):
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    add_launcher(parser)
    return asked_launcher(parser.parse_intermixed_args([*words]))


def ended(job, *, seconds=60):
    until = time.monotonic() + seconds
    while (code := job.poll()) is None:
        assert time.monotonic() < until, "it did not end"
        time.sleep(0.05)
    return code


def test_the_words_of_a_launcher_are_its_settings():
    words = [
        "lr=1e-3",
        "slurm.time=2h",
        "--launcher",
        "slurm",
        "slurm.gpus=8",
        "--partition",
        "big",
    ]
    words += ["slurm.options={mail-user: me}"]
    slurm, rest = asked(*words)
    assert rest == ["lr=1e-3"]
    assert slurm == Slurm(
        time=timedelta(hours=2), gpus=8, partition="big", options={"mail-user": "me"}
    )
    assert asked("--launcher", "ray", "ray.address=auto", "a=1") == (Ray(address="auto"), ["a=1"])
    assert asked("a=1", "slurm.time=2h") == (None, ["a=1", "slurm.time=2h"])  # refused as settings
    assert isinstance(launcher_of(None, jobs=3), Local)


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--partition", "big"], "--partition big is for --launcher slurm."),
        (
            ["--launcher", "slurm", "slurm.tim=2h"],
            "Slurm has no setting 'tim'. Did you mean 'time'? It has",
        ),
        (["--launcher", "slurm", "slurm.time=soon"], "Slurm.time: wanted a duration like '20m'"),
        (["--launcher", "slurm", "slurm.nodes=0"], "slurm.nodes must be 1 or more, but is 0."),
        (["--launcher", "slurm", "slurm.gpus=-1"], "slurm.gpus must be 0 or more, but is -1."),
        (
            ["--launcher", "slurm", "slurm.time=30s"],
            "slurm.time must be a minute or more, but is 0:00:30.",
        ),
        (["--launcher", "ray", "ray.cpus=0"], "ray.cpus must be 1 or more, but is 0."),
    ],
)
def test_a_setting_that_cannot_be_is_refused(words, error):
    with pytest.raises(UserError) as caught:
        asked(*words)
    assert str(caught.value).startswith(error)


def test_slurm_is_asked_for_what_was_said(tmp_path, monkeypatch):
    for name, text in (("sbatch", SBATCH.format(folder=tmp_path)), ("srun", "#!/bin/sh\n")):
        (tmp_path / name).write_text(text)
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
    slurm = Slurm(
        time="90m", partition="big", nodes=2, gpus=4, cpus=6, memory=32.0, account="us",
        folder=tmp_path / "jobs", options={"mail-user": "me"},
    )  # fmt: skip
    job = SlurmJobs(slurm, ranks=4).start(["train", "translation/demo"], None, "runs/demo")
    assert (job.id, job.output.name) == ("4711", "4711_0_log.err")
    lines = (tmp_path / "batch.sh").read_text().splitlines()
    found = {line.removeprefix("#SBATCH ") for line in lines if line.startswith("#SBATCH")}
    assert {
        "--time=90", "--partition=big", "--nodes=2", "--gpus-per-node=4", "--ntasks-per-node=4",
        "--cpus-per-task=6", "--mem=32GB", "--account=us", "--mail-user=me", "--signal=USR2@120",
        "--job-name='textmill runs/demo'",
    } <= found  # fmt: skip


def test_where_there_is_no_slurm_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^This machine has no sbatch and srun, "):
        SlurmJobs(Slurm())
    monkeypatch.setitem(sys.modules, "submitit", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'textmill\[slurm\]'"):
        SlurmJobs(Slurm())
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'textmill\[ray\]'"):
        RayJobs(Ray())


@pytest.mark.parametrize("asked", [None, Slurm(cluster="local"), Ray()])
def test_a_number_of_jobs_that_cannot_be_is_refused(asked):
    for jobs in (0, -3):
        with pytest.raises(UserError, match=f"^--jobs is {jobs}; wanted how many run at a time"):
            launcher_of(asked, jobs=jobs)


def test_a_cell_on_several_nodes_is_refused():
    with pytest.raises(UserError, match=r"^slurm\.nodes is 2, but a cell is one process"):
        launcher_of(Slurm(nodes=2))


def test_a_job_says_how_it_ended(tmp_path):
    jobs = SlurmJobs(Slurm(cluster="local", folder=tmp_path / "jobs"))
    good = jobs.start(["list", "optimizers"], tmp_path / "good.txt", "good")
    bad = jobs.start(["train", "nowhere"], tmp_path / "bad.txt", "bad")
    assert (ended(good), ended(bad)) == (0, 1)
    assert "adamw" in (tmp_path / "good.txt").read_text()
    assert "\nerror: " in "\n" + (tmp_path / "bad.txt").read_text()


@pytest.fixture
def ray_is_there():
    ray = pytest.importorskip("ray")
    yield
    ray.shutdown()


@pytest.mark.slow
def test_a_run_whose_time_is_over_saves_and_goes_on(tmp_path, monkeypatch):
    quick(monkeypatch, tmp_path / "here")
    monkeypatch.setattr(slurm_module, "SAVE_SECONDS", 50)  # asked to save after ten seconds
    slurm = Slurm(cluster="local", time="1m", folder=tmp_path / "jobs")
    words = ["train", "tiny.py", "trainer.max_steps=100000000", "--run-dir", "run"]
    job = SlurmJobs(slurm).start(words, tmp_path / "log.txt", "run")
    until = time.monotonic() + 60
    while "Resumed at step" not in job.output.read_text() if job.output.exists() else True:
        assert time.monotonic() < until, "it was not queued again"
        time.sleep(0.2)
    told = job.output.read_text()
    saved = int(re.search(r"Stopped by SIGTERM at step ([\d,]+)", told)[1].replace(",", ""))
    went_on = int(re.search(r"Resumed at step ([\d,]+)", told)[1].replace(",", ""))
    assert went_on == saved
    job.stop()
    assert ended(job) == 128 + signal.SIGTERM


@pytest.mark.slow
@pytest.mark.parametrize(
    "launcher", [["slurm", "slurm.cluster=local", "slurm.time=5m"], ["ray", "ray.cpus=1"]]
)
def test_a_grid_runs_elsewhere_as_here(tmp_path, monkeypatch, capsys, launcher, request):
    if launcher[0] == "ray":
        request.getfixturevalue("ray_is_there")
    quick(monkeypatch, tmp_path / "here")
    words = ["grid", "tiny.py", "optimizer.lr=1e-2,2e-2", *SHORT, "--launcher", *launcher]
    assert main(words) == 0
    table = capsys.readouterr().out
    assert all(RunFolder(run).finished for run in runs_of(tmp_path / "here"))
    assert len(runs_of(tmp_path / "here")) == 2
    assert main(["grid", "tiny.py", "optimizer.lr=1e-2,2e-2", *SHORT]) == 0  # finished: no launcher
    assert capsys.readouterr().out == table


@pytest.mark.slow
def test_a_command_on_ray_is_stopped_and_saves(tmp_path, monkeypatch, ray_is_there):
    quick(monkeypatch, tmp_path / "here")
    jobs, log = RayJobs(Ray()), tmp_path / "log.txt"
    job = jobs.start(["train", "tiny.py", "trainer.max_steps=100000000"], log, "run")
    until = time.monotonic() + 60
    while not log.exists() or "step" not in log.read_text():
        assert time.monotonic() < until, "it did not begin"
        time.sleep(0.2)
    job.stop()
    assert ended(job) == 128 + signal.SIGTERM
    assert "everything is saved" in log.read_text()


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_ray_ends_the_cells_of_a_driver_that_is_killed_and_they_go_on(tmp_path, monkeypatch):
    """At once by the same command: none is lost, none is trained twice at a time or from anew."""
    pytest.importorskip("ray")
    monkeypatch.chdir(write_recipe(tmp_path / "here"))
    words = ["grid", "tiny.py", "optimizer.lr=1e-2,2e-2,3e-2", "trainer.max_steps=2000"]
    words += ["trainer.save_every=100", "trainer.evaluate_every=1000", "reporters.html=false"]
    words = [sys.executable, "-m", "textmill", *words, "--launcher", "ray", "--jobs", "2"]
    with Path("first.txt").open("wb") as log:
        first = subprocess.Popen(words, stdout=log, stderr=log)
    until = time.monotonic() + 90
    while len([*Path().glob("runs/tiny/*/checkpoints/step-00000100")]) < 2:
        assert time.monotonic() < until, Path("first.txt").read_text()
        time.sleep(0.02)
    first.kill()
    first.wait()
    again = subprocess.run(words, capture_output=True, text=True, check=False)
    assert again.returncode == 0, again.stderr
    runs = runs_of(Path())
    assert [RunFolder(run).result["steps"] for run in runs] == [2000] * 3
    starts = [len(RunFolder(run).info["starts"]) for run in runs]
    assert sorted(starts) == [1, 2, 2]
    told = [(run / "log.txt").read_text().count("Resumed at step") for run in runs]
    assert told == [count - 1 for count in starts]


@pytest.mark.slow
@pytest.mark.timeout(300)
@pytest.mark.parametrize("told", [signal.SIGINT, signal.SIGTERM])
def test_a_training_on_ray_that_is_stopped_saves_and_goes_on(tmp_path, told):
    pytest.importorskip("ray")
    here = write_recipe(tmp_path / "here")
    words = [sys.executable, "-m", "textmill", "train", "tiny.py", "--run-dir=run"]
    ray = [*words, "--launcher", "ray", "--nproc", "2"]
    metrics, log = here / "run" / "metrics.jsonl", tmp_path / "log.txt"
    with log.open("wb") as file:
        driver = subprocess.Popen(
            [*ray, "trainer.max_steps=1000000"], cwd=here, stdout=file, stderr=file
        )
    until = time.monotonic() + 120
    while not (metrics.exists() and metrics.read_text()):
        assert driver.poll() is None, log.read_text()
        assert time.monotonic() < until, log.read_text()
        time.sleep(0.2)
    driver.send_signal(told)
    assert driver.wait(60) == 128 + told, log.read_text()
    name = told.name
    said = re.search(
        rf"error: Stopped by {name} at step (\S+); everything is saved", log.read_text()
    )
    assert said, log.read_text()
    assert f"{name} received" not in log.read_text()  # a trace of Ray's own
    assert "Traceback" not in log.read_text()
    steps = int(said[1].replace(",", ""))
    more = [*words, f"trainer.max_steps={steps + 2}"]
    done = subprocess.run(more, cwd=here, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    assert f"Resumed at step {said[1]}." in done.stderr


@pytest.mark.slow
def test_a_recipe_is_trained_alike_by_each_launcher(tmp_path, monkeypatch, capsys, ray_is_there):
    monkeypatch.chdir(write_recipe(tmp_path / "here"))
    words = ["train", "tiny.py", *SHORT]
    ways = {
        "alone": [],
        "nproc": ["--nproc", "2"],
        "ray": ["--launcher", "ray", "--nproc", "2"],
        "slurm": ["--launcher", "slurm", "slurm.cluster=local", "--nproc", "2"],
    }
    weights = {}
    for name, more in ways.items():
        done = subprocess.run(
            [sys.executable, "-m", "textmill", *words, *more, "--run-dir", name],
            capture_output=True,
            text=True,
            check=True,
        )
        until = time.monotonic() + 60
        while not RunFolder(Path(name)).finished:  # Slurm's job goes on when the command has ended
            assert time.monotonic() < until, done.stderr
            time.sleep(0.2)
        assert ("job: " in done.stdout) == (name == "slurm")
        weights[name] = load_file(f"{name}/checkpoints/step-00000004/model.safetensors")
    for name, tensor in weights["nproc"].items():
        assert torch.equal(weights["ray"][name], tensor)
        assert torch.equal(weights["slurm"][name], tensor)
        # One process drops other features out than two: tests/runs/test_many_ranks.py is without.
        assert weights["alone"][name].shape == tensor.shape


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["--again"], "--again trains in the next free folder, and so would each restart."),
        (["--max-restarts", "2"], "A launcher has its own number: slurm.restarts=2."),
        (["nothing=1"], "no setting is named 'nothing'"),
    ],
)
def test_what_a_job_could_not_do_is_said_before_it_is_handed_over(
    tmp_path, monkeypatch, capsys, words, error
):
    monkeypatch.chdir(write_recipe(tmp_path / "here"))
    asked = ["train", "tiny.py", "--launcher", "slurm", "slurm.cluster=local", *words]
    assert main(asked) == 2
    assert error in capsys.readouterr().err
    assert not (tmp_path / "here" / "jobs").exists()
