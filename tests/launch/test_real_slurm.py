"""Jobs of a real Slurm: of its programs on this machine, or skipped where there are none."""

import json
import re
import time

import pytest

from tests.launch.grids import quick
from tests.launch.one_node_slurm import OneNodeSlurm, missing_daemons
from textmill.cli.main import main
from textmill.launch import slurm as slurm_module

MISSING = missing_daemons()
pytestmark = [
    pytest.mark.slow,
    pytest.mark.timeout(500),
    pytest.mark.skipif(
        bool(MISSING),
        reason=f"no {', '.join(MISSING)} here: apt-get install slurmctld slurmd munge",
    ),
]


@pytest.fixture
def slurm(monkeypatch, tmp_path):
    with OneNodeSlurm(monkeypatch) as one:
        quick(monkeypatch, tmp_path / "here")
        yield one


def until(true, said, seconds):
    deadline = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < deadline, said()
        time.sleep(0.2)


def test_a_job_of_two_ranks_whose_time_is_over_is_queued_again_and_goes_on(
    slurm, tmp_path, monkeypatch, capsys
):
    monkeypatch.setattr(slurm_module, "SAVE_SECONDS", 45)
    words = ["train", "tiny.py", "--launcher", "slurm", "--nproc", "2", "slurm.time=1m"]
    words += ["trainer.max_steps=100000000", "trainer.evaluate_every=1000000", "--run-dir=run"]
    assert main(words) == 0
    (job,) = re.findall(r"job: (\d+)", capsys.readouterr().out)
    metrics = tmp_path / "here" / "run" / "metrics.jsonl"
    log, jobs = tmp_path / "here" / "run" / "log.txt", tmp_path / "here" / "jobs"

    def told():
        return log.read_text() if log.exists() else ""

    def said():
        return told() + "".join(path.read_text() for path in jobs.glob("*.log"))

    until(
        lambda: "Resumed at step" in told(), said, seconds=300
    )  # Slurm looks at times now and then
    saved = re.findall(r"Stopped by SIGTERM at step ([\d,]+); everything is saved", said())
    assert re.findall(r"Resumed at step ([\d,]+)", told()) == saved[:1]
    assert "ERROR" not in told()
    assert "Traceback" not in said()
    assert slurm.said("squeue", "--noheader", "--format=%i %r").split()[0] == job
    lines = len(metrics.read_text().splitlines())
    until(lambda: len(metrics.read_text().splitlines()) > lines, said, seconds=60)
    slurm.said("scancel", job)
    until(lambda: slurm.said("squeue", "--noheader") == "", said, seconds=60)
    info = json.loads((tmp_path / "here" / "run" / "run.json").read_text())
    assert [start["ranks"] for start in info["starts"]] == [2, 2]
    assert info["stopped"].startswith("Stopped by SIGTERM")  # of the job that was cancelled, too
