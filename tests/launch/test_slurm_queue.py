"""Jobs that wait in Slurm's queue: listed, found again, and handed over once."""

import json
import logging
import os
import signal
import subprocess
import time
from pathlib import Path

import pytest

from tests.launch.fake_slurm import FakeSlurm
from tests.launch.grids import SHORT, quick, runs_of
from tests.runs.made_runs import made_run
from tests.warm_textmill import warm_programs
from textmill.cli import runs as runs_command
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.launch import slurm as slurm_module
from textmill.launch.slurm import Slurm, SlurmJobs, queued_jobs, recorded_jobs
from textmill.run_folder.folder import RunFolder

TRAIN = ["train", "tiny.py", *SHORT, "--launcher", "slurm"]


@pytest.fixture
def slurm(monkeypatch, tmp_path):
    fake = FakeSlurm(monkeypatch, tmp_path / "bin")
    quick(monkeypatch, tmp_path / "here")
    return fake


def listed(capsys, *words):
    assert main(["runs", "list", *words]) == 0
    return capsys.readouterr().out


def test_a_run_is_listed_while_its_job_waits_and_handed_over_once(slurm, tmp_path, capsys, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    assert main(TRAIN) == 0
    log = tmp_path / "here" / "jobs" / "4711" / "4711_0_log.err"
    told = f"job: 4711\nlog: {log}\n"
    assert capsys.readouterr().out == told
    header, line = listed(capsys).splitlines()
    assert header.split()[:3] == ["run", "recipe", "state"]
    run, *rest = line.split()
    assert rest == ["-", "waits:", "job", "4711", "-", "-", "0.0", "log:", str(log)]
    assert listed(capsys, "runs").splitlines() == [header, line]
    assert listed(capsys, "elsewhere") == "No runs in elsewhere.\n"

    assert main(TRAIN) == 0
    assert capsys.readouterr().out == told
    assert slurm.handed_over == ["4711"]
    assert f"{run} was handed over before, and its job has not ended." in caplog.text

    made_run(Path(run))  # it began once, and waits again
    assert "waits: job 4711" in listed(capsys)
    job = slurm.queue / "4711.job"
    job.write_text(job.read_text().replace("PENDING", "RUNNING"))
    assert "4711" not in listed(capsys)
    slurm.end("4711")
    assert main(TRAIN) == 0
    assert slurm.handed_over == ["4711", "4712"]


def test_the_list_asks_slurm_only_for_jobs_on_record_and_not_for_long(
    slurm, capsys, caplog, monkeypatch
):
    asked = slurm.queue / "asked"
    (slurm.queue / "hangs").touch()
    assert listed(capsys) == "No runs in runs.\n"
    assert not asked.exists()
    (slurm.queue / "hangs").unlink()
    assert main(TRAIN) == 0
    capsys.readouterr()

    (slurm.queue / "hangs").touch()
    with monkeypatch.context() as patch:
        patch.setattr(runs_command, "QUEUE_SECONDS", 0.2)
        assert listed(capsys) == "No runs in runs.\n"
    assert "squeue does not say which jobs wait: nothing within 0.2 s." in caplog.text
    (slurm.queue / "hangs").unlink()

    assert recorded_jobs() == {"4711"}

    slurm.end("4711")
    asked.unlink()
    assert listed(capsys) == "No runs in runs.\n"
    assert asked.exists()
    asked.unlink()
    assert listed(capsys) == "No runs in runs.\n"  # it has ended: there is nothing to ask for
    assert not asked.exists()


def test_jobs_of_others_are_not_ours(slurm, tmp_path):
    for number, folder, name in (
        ("1", tmp_path / "here", "textmill runs/a"),
        ("2", tmp_path, "textmill runs/a"),
        ("3", tmp_path / "here", "python"),
        ("4", "N/A", ""),
    ):
        text = f"{number}|PENDING|{folder}|{tmp_path}/jobs/.submission.sh|{name}\n"
        (slurm.queue / f"{number}.job").write_text(text)
    (job,) = queued_jobs()
    assert (job.number, job.state, job.name) == ("1", "PENDING", "runs/a")
    assert job.log == tmp_path / "jobs" / "1" / "1_0_log.err"
    assert f"--user={os.getuid()} " in (slurm.queue / "asked").read_text()


def test_where_slurm_does_not_answer_nothing_is_handed_over(slurm, capsys, caplog, monkeypatch):
    (slurm.queue / "fails").touch()
    assert main(TRAIN) == 2
    said = (
        "squeue does not say which jobs wait: Unable to contact slurm controller. Try again when "
        "Slurm answers."
    )
    assert said in capsys.readouterr().err
    assert slurm.handed_over == []

    (slurm.queue / "fails").unlink()
    monkeypatch.setattr(slurm_module, "QUEUE_SECONDS", 0)
    jobs = SlurmJobs(Slurm())
    jobs.handed_over(["list"], "a")
    (slurm.queue / "fails").touch()
    jobs.handed_over(["list"], "b")  # it has answered: what waits is not ended for this
    with pytest.raises(UserError, match=r"^squeue does not say"):
        SlurmJobs(Slurm()).handed_over(["list"], "a")


def test_a_job_whose_command_was_killed_too_early_is_handed_over_again(
    slurm, tmp_path, capsys, caplog
):
    assert main(TRAIN) == 0
    (pickled,) = (tmp_path / "here" / "jobs").rglob("*_submitted.pkl")
    pickled.unlink()  # as where the command was killed before it was written
    assert main(TRAIN) == 0
    assert slurm.handed_over == ["4711", "4712"]
    assert slurm.waiting == ["4712"]
    assert "Job 4711 cannot run: the command that handed it over was killed" in caplog.text


def test_an_answer_that_does_not_come_is_not_waited_for(slurm, monkeypatch):
    (slurm.queue / "hangs").touch()
    monkeypatch.setattr(slurm_module, "ANSWER_SECONDS", 0.2)
    with pytest.raises(UserError, match=r"^squeue does not say .*: nothing within 0\.2 s\. Try"):
        queued_jobs()


def test_a_job_that_was_cancelled_while_it_waited_has_ended(slurm, tmp_path, monkeypatch):
    """Slurm keeps no account of jobs here, so the queue alone says it; one look is not enough."""
    monkeypatch.setattr(slurm_module, "QUEUE_SECONDS", 0)
    jobs, log = SlurmJobs(Slurm()), tmp_path / "log.txt"
    job = jobs.start(["train", "tiny.py"], log, "a")
    assert job.poll() is None
    slurm.end(job.id)
    (slurm.queue / "fails").touch()  # what Slurm does not say is no end
    assert [job.poll(), job.poll(), job.poll()] == [None] * 3
    (slurm.queue / "fails").unlink()
    assert [job.poll(), job.poll()] == [None, 1]
    assert "error: job 4711 has left Slurm's queue without a result" in log.read_text()

    job = jobs.start(["train", "tiny.py"], log, "b")
    job.stop()
    assert job.poll() == 128 + signal.SIGTERM


def test_a_look_at_the_queue_from_before_a_job_does_not_end_it(slurm, tmp_path):
    jobs = SlurmJobs(Slurm())
    jobs.handed_over(["list"], "other")  # with a look that is not repeated for half a minute
    job = jobs.start(["train", "tiny.py"], tmp_path / "log.txt", "a")
    job._stopped = True
    assert job.poll() is None, "it still waits or runs"


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_driver_that_is_killed_leaves_its_jobs_in_the_queue(slurm, tmp_path):
    """They are handed over again; the second job of a cell finds it finished."""
    here = tmp_path / "here"
    command = ["grid", "tiny.py", "optimizer.lr=1e-2,2e-2,3e-2", *SHORT, "--launcher", "slurm"]

    def driver():
        words = [str(warm_programs() / "textmill"), *command]
        with (tmp_path / "log").open("ab") as log:
            return subprocess.Popen(words, cwd=here, stdout=log, stderr=log)

    def until(true):
        deadline = time.monotonic() + 60
        while not true():
            assert time.monotonic() < deadline, (tmp_path / "log").read_text()
            time.sleep(0.05)

    for count in (1, 3):  # in the middle of handing over, and after it
        one = driver()
        until(lambda count=count: len(slurm.handed_over) >= count)
        one.kill()
        one.wait()
    before = len(slurm.handed_over)
    last = driver()
    until(lambda: len(slurm.handed_over) == before + 3)
    for number in slurm.waiting:
        slurm.run(number)
    assert last.wait(60) == 0, (tmp_path / "log").read_text()
    starts = [json.loads((run / "run.json").read_text())["starts"] for run in runs_of(here)]
    assert [len(each) for each in starts] == [1, 1, 1]
    assert all(RunFolder(run).finished for run in runs_of(here))
