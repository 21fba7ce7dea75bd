"""Jobs of Slurm: what is asked for, what comes back, found again in the queue, handed over once."""

import logging
import os
import signal
import subprocess
import sys
from datetime import timedelta
from pathlib import Path

import pytest

from tests.launch.grids import SHORT, quick, runs_of
from tests.runs.made_runs import made_run
from tests.waiting import wait_until
from textmill.cli import runs as runs_list
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.launch import slurm as slurm_module
from textmill.launch.slurm import Slurm, SlurmJobs, queued_jobs, recorded_jobs
from textmill.run_folder.folder import RunFolder

TRAIN = ["train", "tiny.py", *SHORT, "--launcher", "slurm"]

SBATCH = """#!{python} -IS
import os, sys
from pathlib import Path
queue, script = Path({queue!r}), sys.stdin.read()
number = str(4711 + len([*queue.glob("*.sh")]))
name = next(line for line in script.splitlines() if "--job-name=" in line)
(queue / (number + ".sh")).write_text(script)
(queue / (number + ".job")).write_text("|".join(
    [number, "PENDING", os.getcwd(), name.partition("=")[2].strip("'")]) + chr(10))
print(number)
"""
SQUEUE = """#!/bin/sh
echo "$*" >> {queue}/asked
test -e {queue}/fails && echo "Unable to contact slurm controller" >&2 && exit 1
test -e {queue}/hangs && exec sleep 30
cat {queue}/*.job 2>/dev/null
exit 0
"""
SCANCEL = """#!/bin/sh
rm {queue}/$1.job
"""
SCONTROL = """#!/bin/sh
echo "$*" >> {queue}/requeued
"""


class FakeSlurm:
    """Commands first on the PATH; what was handed over, and what still waits."""

    def __init__(self, monkeypatch, folder: Path) -> None:
        self.queue = folder / "queue"
        self.queue.mkdir(parents=True)
        scripts = {"sbatch": SBATCH, "squeue": SQUEUE, "scancel": SCANCEL, "scontrol": SCONTROL}
        for name, text in scripts.items():
            said = text.format(python=sys.executable, queue=str(self.queue))
            (folder / name).write_text(said)
            (folder / name).chmod(0o755)
        monkeypatch.setenv("PATH", str(folder), prepend=os.pathsep)

    @property
    def handed_over(self) -> list[str]:
        """The numbers of all jobs."""
        return sorted(path.stem for path in self.queue.glob("*.sh"))

    def end(self, number: str) -> None:
        """Takes a job out of the queue."""
        (self.queue / f"{number}.job").unlink()

    def start(self, number: str) -> subprocess.Popen:
        """Runs a job that waits, in its session."""
        job = self.queue / f"{number}.job"
        job.write_text(job.read_text().replace("PENDING", "RUNNING"))
        text = (self.queue / f"{number}.sh").read_text()
        log = next(x for x in text.splitlines() if "--output=" in x).partition("=")[2]
        with open(log.replace("%j", number), "a") as file:
            return subprocess.Popen(
                ["bash", self.queue / f"{number}.sh"], env={**os.environ, "SLURM_JOB_ID": number},
                stdout=file, stderr=file,
            )  # fmt: skip


@pytest.fixture
def slurm(monkeypatch, tmp_path):
    fake = FakeSlurm(monkeypatch, tmp_path / "bin")
    quick(monkeypatch, tmp_path / "here")
    monkeypatch.setattr(slurm_module, "QUEUE_SECONDS", 0)
    return fake


def listed(capsys, *words):
    assert main(["runs", "list", *words]) == 0
    return capsys.readouterr().out


def test_slurm_is_asked_for_what_was_said(tmp_path):
    asked = Slurm(
        time=timedelta(minutes=90), partition="big", nodes=2, gpus=4, cpus=6, memory=32.0,
        account="us", options={"mail-user": "me"},
    )  # fmt: skip
    words = ["train", "translation/demo", "a=[1, 2]"]
    script = asked.script(words, ranks=4, name="runs/demo", log=Path("jobs/%j.log"))
    found = {line.removeprefix("#SBATCH --") for line in script.splitlines() if "SBATCH" in line}
    assert found == {
        "time=90", "partition=big", "nodes=2", "gpus-per-node=4", "ntasks-per-node=1",
        "cpus-per-task=24", "mem=32G", "account=us", "mail-user=me", "signal=B:USR1@120",
        "job-name='textmill runs/demo'", "requeue", "open-mode=append",
        f"output={Path.cwd()}/jobs/%j.log",
    }  # fmt: skip
    assert "srun" in script
    assert "--nnodes=2 --nproc-per-node=4" in script
    assert "-m textmill train translation/demo 'a=[1, 2]'" in script
    alone = Slurm().script(["list"], ranks=1, name="x", log=Path("x.txt"))
    assert f"{sys.executable} -m textmill list &" in alone
    two = Slurm().script(["list"], ranks=2, name="x", log=Path("x.txt"))
    assert "-m textmill list --nproc=2 &" in two


def test_a_run_is_listed_while_its_job_waits_and_handed_over_once(slurm, tmp_path, capsys, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    assert main(TRAIN) == 0
    log = tmp_path / "here" / "jobs" / "4711.log"
    told = f"job: 4711\nlog: {log}\n"
    assert capsys.readouterr().out == told
    _, line = listed(capsys).splitlines()
    run, *rest = line.split()
    assert rest == ["-", "waits:", "job", "4711", "-", "-", "0.0", "log:", str(log)]
    assert listed(capsys, "elsewhere") == "No runs in elsewhere.\n"

    assert main(TRAIN) == 0
    assert capsys.readouterr().out == told
    assert slurm.handed_over == ["4711"]
    assert f"{run} was handed over before, and its job has not ended." in caplog.text

    made_run(Path(run))  # it began once, and waits again
    assert "waits: job 4711" in listed(capsys)
    slurm.end("4711")
    assert main(TRAIN) == 0
    assert slurm.handed_over == ["4711", "4712"]


def test_the_list_asks_slurm_only_for_jobs_on_record_and_not_for_long(
    slurm, capsys, caplog, monkeypatch
):
    asked = slurm.queue / "asked"
    assert listed(capsys) == "No runs in runs.\n"
    assert not asked.exists()
    assert main(TRAIN) == 0
    capsys.readouterr()
    (slurm.queue / "hangs").touch()
    with monkeypatch.context() as patch:
        patch.setattr(runs_list, "QUEUE_SECONDS", 0.2)
        assert listed(capsys) == "No runs in runs.\n"
    assert "squeue does not say which jobs wait: nothing within 0.2 s." in caplog.text
    (slurm.queue / "hangs").unlink()
    assert recorded_jobs() == {"4711"}
    slurm.end("4711")
    assert listed(capsys) == "No runs in runs.\n"
    assert recorded_jobs() == set()  # it has ended: there is nothing to ask for


def test_jobs_of_others_are_not_ours(slurm, tmp_path):
    for number, folder, name in (
        ("1", tmp_path / "here", "textmill runs/a"),
        ("2", tmp_path, "textmill runs/a"),
        ("3", tmp_path / "here", "python"),
        ("4", "N/A", ""),
    ):
        (slurm.queue / f"{number}.job").write_text(f"{number}|PENDING|{folder}|{name}\n")
    (job,) = queued_jobs()
    assert (job.number, job.state, job.name) == ("1", "PENDING", "runs/a")
    assert f"--user={os.getuid()} " in (slurm.queue / "asked").read_text()


def test_where_slurm_does_not_answer_nothing_is_handed_over(slurm, capsys):
    (slurm.queue / "fails").touch()
    assert main(TRAIN) == 2
    assert "Unable to contact slurm controller. Try again" in capsys.readouterr().err
    assert slurm.handed_over == []


def test_a_job_that_was_cancelled_while_it_waited_has_ended(slurm, tmp_path):
    jobs, log = SlurmJobs(Slurm()), tmp_path / "log.txt"
    job = jobs.start(["train", "tiny.py"], log, "a")
    assert job.poll() is None
    slurm.end(job.id)
    (slurm.queue / "fails").touch()  # what Slurm does not say is no end
    assert [job.poll(), job.poll(), job.poll()] == [None] * 3
    (slurm.queue / "fails").unlink()
    assert [job.poll(), job.poll()] == [None, 1]
    job = jobs.start(["train", "tiny.py"], log, "b")
    job.stop()
    assert job.poll() == 128 + signal.SIGTERM


@pytest.mark.slow
def test_a_job_leaves_its_exit_code(slurm, tmp_path):
    jobs = SlurmJobs(Slurm())
    good = jobs.start(["list", "optimizers"], tmp_path / "good.txt", "good")
    bad = jobs.start(["train", "nowhere"], tmp_path / "bad.txt", "bad")
    for job in (good, bad):
        slurm.start(job.id).wait()
    assert (good.poll(), bad.poll()) == (0, 2)
    assert "adamw" in (tmp_path / "good.txt").read_text()
    assert "\nerror: " in "\n" + (tmp_path / "bad.txt").read_text()


@pytest.mark.parametrize(
    "sent", [signal.SIGUSR1, pytest.param(signal.SIGTERM, marks=pytest.mark.slow)]
)
def test_a_run_whose_time_is_over_saves_and_is_queued_again(slurm, sent):
    """A job that is cancelled saves as well, and is not queued again."""
    words = ["tiny.py", "trainer.max_steps=100000000", "trainer.save_every=9999", "--run-dir=run"]
    assert main(["train", *words, "--launcher", "slurm"]) == 0
    log, metrics = Path("jobs/4711.log"), Path("run/metrics.jsonl")
    job = slurm.start("4711")
    wait_until(lambda: metrics.exists() and metrics.read_text(), log.read_text)
    job.send_signal(sent)
    job.wait()
    assert "Stopped by SIGTERM at step" in log.read_text()
    requeued = slurm.queue / "requeued"
    assert requeued.exists() is (sent == signal.SIGUSR1)
    assert Path("jobs/4711.code").exists() is (sent == signal.SIGTERM)
    assert not RunFolder(Path("run")).finished


@pytest.mark.slow
def test_a_driver_that_was_killed_finds_its_jobs(slurm, tmp_path, capsys, monkeypatch):
    """Those that it handed over wait or run on, and none is handed over twice."""
    command = ["grid", "tiny.py", "optimizer.lr=1e-2,2e-2", *SHORT, "--launcher", "slurm"]
    monkeypatch.setattr("textmill.launch.grid.check_first", lambda *_: "")
    with monkeypatch.context() as patch:
        patch.setattr("textmill.launch.grid.Grid.look", lambda self: 1 / 0)
        patch.setattr("textmill.launch.slurm.SlurmJob.kill", lambda self: None)  # no time for it
        with pytest.raises(ZeroDivisionError):
            main([*command, "--debug"])
    assert slurm.handed_over == ["4711", "4712"]
    running = [slurm.start(number) for number in slurm.handed_over]
    assert main(command) == 0
    assert slurm.handed_over == ["4711", "4712"]
    assert [job.wait() for job in running] == [0, 0]
    assert [len(RunFolder(run).info["starts"]) for run in runs_of(tmp_path / "here")] == [1, 1]


def test_what_slurm_refuses_is_said(slurm, tmp_path):
    (tmp_path / "bin" / "sbatch").write_text("#!/bin/sh\necho 'Invalid partition' >&2\nexit 1\n")
    with pytest.raises(UserError, match=r"^Slurm refuses the job: Invalid partition"):
        SlurmJobs(Slurm()).start(["list"], tmp_path / "log.txt", "a")
