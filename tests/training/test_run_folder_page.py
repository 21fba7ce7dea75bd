"""The page on the run folder names all that runs write, and nothing that none writes."""

import re
from fnmatch import fnmatch
from pathlib import Path

import pytest

from tests.trained_run import library_run
from textmill.metrics.reporters.reporter import RunInfo
from textmill.metrics.reporters.services import TensorBoard
from textmill.runtime.devices import Experiment

PAGE = Path(__file__).parents[2] / "docs" / "run-folder.md"

ELSEWHERE = {
    "README.md": "written by textmill model-card: tests/runs",
    "pushed.json": "written by textmill pull: tests/runs/sharing",
    "*.py": "local modules of a script: tests/recipes",
    "bad_rows.jsonl": "tests/recipes",
    "checkpoints/calibration.json": "tests/runs/test_calibrate.py",
    "evaluations/": "written by textmill watch: tests/launch/test_watch.py",
    "export/*/": "tests/exported",
    "pretrained/*/": "written where a model was trained before: tests/runs/test_pretrained.py",
    "wandb/": "written by wandb itself: tests/metrics/reporters",
}
"""What the runs of this test do not write, and where it is tested."""


def named():
    """The first column of the page's table: patterns, those that end in ``/`` with all below."""
    rows = [line for line in PAGE.read_text().splitlines() if line.startswith("| `")]
    return [name for row in rows for name in re.findall(r"`([^`]+)`", row.split("|")[1])]


def fits(path, pattern):
    return fnmatch(path, f"{pattern}*" if pattern.endswith("/") else pattern)


@pytest.fixture
def written(bench, tmp_path):
    """The files of two runs, and those of the reporters that a service needs."""
    trainer = bench.but(folder=tmp_path / "run").make(save_modules=("encoder",), ema=0.9)
    reporter = TensorBoard.Config().build(xp=Experiment(folder=tmp_path / "run"))
    reporter.start(RunInfo())
    reporter.close()
    trainer.fit()
    folders = (library_run(), tmp_path / "run")
    return {
        path.relative_to(folder).as_posix()
        for folder in folders
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_the_page_names_what_runs_write_and_nothing_else(written):
    patterns = named()
    assert len(patterns) == len(set(patterns))
    assert [path for path in sorted(written) if not any(fits(path, p) for p in patterns)] == []
    idle = [p for p in patterns if not any(fits(path, p) for path in written if p != "*.py")]
    assert sorted(idle) == sorted(ELSEWHERE)
