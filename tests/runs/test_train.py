"""Runs: the folder, the same command again, another length, other data, two processes, signals."""

import json
import signal
import subprocess
import time

import pytest

from tests.runs.many_ranks import ranked_runs
from tests.runs.tiny import outcome, run_folder, unlike, write_recipe
from tests.warm_textmill import warm_programs


@pytest.fixture(scope="session")
def trainings():
    return ranked_runs()


@pytest.fixture(scope="module")
def undisturbed(trainings, tmp_path_factory):
    folder = write_recipe(tmp_path_factory.mktemp("undisturbed"))
    ended = trainings.train(folder)
    assert ended.code == 0, ended.log
    return outcome(run_folder(folder))


@pytest.fixture(scope="module")
def done(trainings, tmp_path_factory):
    """A folder with a finished run, which the tests leave as it is."""
    folder = write_recipe(tmp_path_factory.mktemp("done"))
    assert trainings.train(folder).code == 0
    return folder


def after(folder, lines):
    """Waits until so many lines of values were written."""

    def wait():
        deadline = time.monotonic() + 60
        while time.monotonic() < deadline:
            for path in folder.glob("runs/tiny/*/metrics.jsonl"):
                if path.read_bytes().count(b"\n") >= lines:
                    return True
            time.sleep(0.001)
        return None

    return wait


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


@pytest.mark.slow
def test_another_length_goes_on_to_the_same_bits_whoever_names_it(trainings, tmp_path):
    folder = write_recipe(tmp_path)
    trainings.train(folder)
    run = run_folder(folder)
    ended = trainings.train(folder, "train", "tiny.py", "trainer.max_steps=24")
    assert ended.code == 0, ended.log
    assert "trainer.max_steps: 20 -> 24\n" in ended.log
    other = write_recipe(tmp_path / "other")
    trainings.train(other)
    more = [str(run_folder(other)), "trainer.max_steps=24", "--allow-code"]
    assert trainings.train(other, "train", *more).code == 0
    assert unlike(outcome(run), outcome(run_folder(other))) == []


@pytest.mark.parametrize(
    "number", [signal.SIGTERM, pytest.param(signal.SIGINT, marks=pytest.mark.slow)]
)
def test_a_signal_saves_and_the_same_command_goes_on(trainings, undisturbed, tmp_path, number):
    folder = write_recipe(tmp_path)
    ended = trainings.train(folder, when=after(folder, 6), send=number)
    assert ended.code == 128 + number, ended.log
    assert f"Stopped by {number.name} at step " in ended.log
    assert "Traceback" not in ended.log
    ended = trainings.train(folder)
    assert ended.code == 0
    assert "Resumed at step " in ended.log
    assert unlike(undisturbed, outcome(run_folder(folder))) == []


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


def test_one_process_at_a_time(trainings, tmp_path):
    """The first is held at its third step until the second was answered."""
    folder = write_recipe(tmp_path)
    with (folder / "tiny.py").open("a") as recipe:
        recipe.write(WAITS)
    answers = []

    def meanwhile():
        try:
            after(folder, 2)()
            words = [warm_programs() / "textmill", "train", "tiny.py"]
            answers.append(
                subprocess.run(words, cwd=folder, capture_output=True, text=True, check=False)
            )
        finally:
            (folder / "go").touch()

    first = trainings.train(folder, when=meanwhile)
    (second,) = answers
    assert first.code == 0, first.log
    assert second.returncode == 1, second.stderr
    assert f"{run_folder(folder)}".removeprefix(f"{folder}/") in second.stderr
    assert " is in use by " in second.stderr
