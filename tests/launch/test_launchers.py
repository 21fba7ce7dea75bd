"""Commands by Slurm and on Ray: what is asked for, what comes back, and runs that go on."""

import argparse
import signal
import sys
from datetime import timedelta

import pytest

from tests.launch.grids import SHORT, quick, runs_of
from tests.runs.tiny import write_recipe
from tests.waiting import wait_until
from textmill.cli.grid import add_launcher, asked_launcher
from textmill.cli.main import main
from textmill.errors import MissingExtraError, UserError
from textmill.launch.launcher import Local, launcher_of
from textmill.launch.ray import Ray, RayJobs
from textmill.launch.slurm import Slurm, SlurmJobs
from textmill.run_folder.folder import RunFolder


def asked(*words):
    parser = argparse.ArgumentParser()
    parser.add_argument("words", nargs="*")
    add_launcher(parser)
    return asked_launcher(parser.parse_intermixed_args([*words]))


def test_the_words_of_a_launcher_are_its_settings():
    words = [
        "lr=1e-3", "slurm.time=2h", "--launcher", "slurm", "slurm.gpus=8", "--partition", "big",
    ]  # fmt: skip
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
        (["--launcher", "slurm", "slurm.tim=2h"], "Slurm has no setting 'tim'. Did you mean"),
        (["--launcher", "slurm", "slurm.time=soon"], "Slurm.time: wanted a duration like '20m'"),
        (["--launcher", "slurm", "slurm.nodes=0"], "slurm.nodes must be at least 1, but is 0."),
        (["--launcher", "slurm", "slurm.gpus=-1"], "slurm.gpus must be at least 0, but is -1."),
        (["--launcher", "slurm", "slurm.time=30s"], "slurm.time must be a minute or more, but is"),
        (["--launcher", "ray", "ray.cpus=0"], "ray.cpus must be at least 1, but is 0."),
    ],
)
def test_a_setting_that_cannot_be_is_refused(words, error):
    with pytest.raises(UserError) as caught:
        asked(*words)
    assert str(caught.value).startswith(error)


def test_where_there_is_no_slurm_it_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(UserError, match=r"^This machine has no sbatch and squeue, "):
        SlurmJobs(Slurm())
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'textmill\[ray\]'"):
        RayJobs(Ray())


@pytest.mark.parametrize("asked", [None, Slurm(), Ray()])
def test_a_number_of_jobs_that_cannot_be_is_refused(asked):
    for jobs in (0, -3):
        with pytest.raises(UserError, match=f"^--jobs is {jobs}; wanted how many run at a time"):
            launcher_of(asked, jobs=jobs)


def test_a_cell_on_several_nodes_is_refused():
    with pytest.raises(UserError, match=r"^slurm\.nodes is 2, but a cell is one process"):
        launcher_of(Slurm(nodes=2))


@pytest.fixture
def ray_is_there():
    ray = pytest.importorskip("ray")
    yield
    ray.shutdown()


@pytest.mark.slow
def test_a_grid_runs_on_ray_as_here(tmp_path, monkeypatch, capsys, ray_is_there):
    quick(monkeypatch, tmp_path / "here")
    words = ["grid", "tiny.py", "optimizer.lr=1e-2,2e-2", *SHORT]
    assert main([*words, "--launcher", "ray", "ray.cpus=1"]) == 0
    table = capsys.readouterr().out
    assert all(RunFolder(run).finished for run in runs_of(tmp_path / "here"))
    assert main(words) == 0  # finished: no launcher
    assert capsys.readouterr().out == table


@pytest.mark.slow
def test_a_command_on_ray_is_stopped_and_saves(tmp_path, monkeypatch, ray_is_there):
    quick(monkeypatch, tmp_path / "here")
    jobs, log = RayJobs(Ray()), tmp_path / "log.txt"
    job = jobs.start(["train", "tiny.py", "trainer.max_steps=100000000"], log, "run")
    wait_until(lambda: log.exists() and "step" in log.read_text())
    job.stop()
    wait_until(lambda: job.poll() is not None)
    assert job.poll() == 128 + signal.SIGTERM
    assert "everything is saved" in log.read_text()


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
    asked = ["train", "tiny.py", "--launcher", "slurm", *words]
    assert main(asked) == 2
    assert error in capsys.readouterr().err
    assert not (tmp_path / "here" / "jobs").exists()
