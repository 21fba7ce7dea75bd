"""Runs: the folder, the same command again, two processes, signals."""

import json
import signal
import subprocess

import pytest

from tests.runs.rank_kills import lines_written
from tests.runs.tiny import outcome, run_folder, unlike, write_recipe
from tests.waiting import wait_until
from tests.warm_textmill import warm_programs


@pytest.fixture(scope="module")
def done(runs, tmp_path_factory):
    """A folder with a finished run, which the tests leave as it is."""
    folder = write_recipe(tmp_path_factory.mktemp("done"))
    ended = runs.train(folder)
    assert ended.code == 0, ended.log
    return folder


def wait_for_lines(folder, count):
    """Waits until so many lines of values were written."""
    wait_until(lambda: lines_written(folder) >= count)
    return True


def test_the_folder_holds_what_the_run_is(done):
    run = run_folder(done)
    names = {path.name for path in run.iterdir()}
    wanted = {"recipe.py", "config.yaml", "run.json", "metrics.jsonl", "predictions", "lock"}
    assert names == wanted | {"log.txt", "checkpoints", "report.html"}
    info = json.loads((run / "run.json").read_text())
    assert info["key"] == run.name
    assert info["finished"] is True
    built = (run / "config.yaml").read_text().partition("built:")[2]
    assert "vocabulary_size: 44" in built
    assert "task:" not in built  # it is as in settings
    assert (run / "recipe.py").read_bytes() == (done / "tiny.py").read_bytes()


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_saves_and_the_same_command_goes_on(runs, done, tmp_path, number):
    folder = write_recipe(tmp_path)
    ended = runs.train(folder, when=lambda: wait_for_lines(folder, 6), send=number)
    assert ended.code == 128 + number, ended.log
    assert f"Stopped by {number.name} at step " in ended.log
    assert "Traceback" not in ended.log
    ended = runs.train(folder)
    assert ended.code == 0
    assert "Resumed at step " in ended.log
    assert unlike(outcome(run_folder(done)), outcome(run_folder(folder))) == []


WAITS = """
import time
from textmill.training import Callback


class Waits(Callback):
    def step(self, progress):
        deadline = time.monotonic() + 60
        while progress.steps == 3 and not Path("go").exists() and time.monotonic() < deadline:
            time.sleep(0.01)


def callbacks():
    return [Waits()]
"""


def test_one_process_at_a_time(runs, tmp_path):
    """The first is held at its third step until the second was answered."""
    folder = write_recipe(tmp_path)
    with (folder / "tiny.py").open("a") as recipe:
        recipe.write(WAITS)
    answers = []

    def meanwhile():
        try:
            wait_for_lines(folder, 2)
            words = [warm_programs() / "textmill", "train", "tiny.py"]
            answers.append(
                subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            )
        finally:
            (folder / "go").touch()

    first = runs.train(folder, when=meanwhile)
    (second,) = answers
    assert first.code == 0, first.log
    assert second.returncode == 1, second.stderr
    assert f"{run_folder(folder)}".removeprefix(f"{folder}/") in second.stderr
    assert " is in use by " in second.stderr
