"""Checkpoints are evaluated as they appear, each once, whatever vanishes, crashes or is killed."""

import json
import logging
import os
import shutil
import signal
import subprocess
import time

import pytest
from torch import nn

from tests.launch.grids import quick
from tests.launch.test_grid import Fake
from tests.runs.made_runs import made_run
from tests.waiting import wait_until
from tests.warm_textmill import warm_programs
from textmill.checkpoint.store import Checkpoints
from textmill.cli.main import main
from textmill.errors import RunStoppedError, StorageError
from textmill.launch import watch as watch_module
from textmill.launch.watch import Watch
from textmill.launch.worth import Worth
from textmill.run_folder.folder import RunFolder
from textmill.runtime.lock import Lock, owner_of

SELECTED = {"metric": "bleu", "better": "higher"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    monkeypatch.setattr(watch_module, "PAUSE", 0.0)
    monkeypatch.setattr(watch_module, "TICK", 0.001)


class Evaluations:
    """Starts no process: each evaluation leaves its values, or what the test says."""

    jobs, threads = 1, 1

    def __init__(self, do=lambda run, step: {"bleu": float(step)}):
        self.do, self.asked = do, []

    def start(self, words, log, name):
        run, checkpoint = words[1], words[words.index("--checkpoint") + 1]
        step = int(checkpoint.removeprefix("step-"))
        self.asked.append((os.path.basename(run), step))
        values = self.do(run, step)
        log.write_text("error: it broke.\n")
        if values is None:
            return Fake("", 1)
        with open(words[words.index("--values") + 1], "w") as file:
            json.dump({"valid_data": values}, file)
        return Fake("", 0)


def watch(root, launcher, *words, timeout=0.05):
    return Watch(root, Worth(words), launcher, timeout=timeout)


def lines_of(run):
    text = (run / "evaluations" / "evaluations.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_each_checkpoint_is_evaluated_once_and_the_best_is_marked(tmp_path, caplog):
    run = made_run(tmp_path / "runs" / "a", selected_by=SELECTED)
    launcher = Evaluations(lambda run, step: {"bleu": {10: 1.0, 20: 3.0, 30: 2.0}[step]})
    assert watch(tmp_path / "runs", launcher).run() == [run]
    assert launcher.asked == [("a", 10), ("a", 20), ("a", 30)]
    assert [line["values"]["valid_data"]["bleu"] for line in lines_of(run)] == [1, 3, 2]
    (best,) = json.loads((run / "evaluations" / "best.json").read_text())
    assert best == {
        "checkpoint": "step-00000020", "step": 20, "words": [], "data": "valid_data",
        "metric": "bleu", "value": 3.0,
    }  # fmt: skip
    told = [record.message for record in caplog.records]
    assert told == [
        f"{run} step 10: valid_data bleu 1.000 (the best so far)",
        f"{run} step 20: valid_data bleu 3.000 (the best so far)",
        f"{run} step 30: valid_data bleu 2.000",
    ]
    assert sorted(p.name for p in (run / "evaluations").glob("*.json")) == ["best.json"]
    # The same again: nothing; with other words all of them, with a best of their own.
    watch(tmp_path / "runs", launcher).run()
    assert len(launcher.asked) == 3
    watch(tmp_path / "runs", launcher, "valid_data.path=b.tsv").run()
    assert len(launcher.asked) == 6
    assert [
        each["words"] for each in json.loads((run / "evaluations" / "best.json").read_text())
    ] == [[], ["valid_data.path=b.tsv"]]


def test_of_equal_values_the_later_is_the_best(tmp_path):
    run = made_run(tmp_path / "a", selected_by=SELECTED)
    values = {10: 5.0, 20: 5.0, 30: 4.0}
    watch(tmp_path, Evaluations(lambda _, step: {"bleu": values[step], "loss": 1.0})).run()
    (best,) = json.loads((run / "evaluations" / "best.json").read_text())
    assert best["step"] == 20


def test_what_appears_while_it_watches_is_evaluated_until_the_run_is_finished(tmp_path):
    run = made_run(tmp_path / "a", steps=(10,), best=10, finished=False)
    store = Checkpoints(run / "checkpoints", keep=9)

    def more(_, step):
        if step < 30:
            store.save(step + 10, {"model": nn.Linear(2, 1)})
        else:
            RunFolder(run).write_info(finished=True, result={"steps": 30})
        return {"loss": 1.0}

    launcher = Evaluations(more)
    assert watch(tmp_path, launcher, timeout=60).run() == [run]
    assert launcher.asked == [("a", 10), ("a", 20), ("a", 30)]


def test_it_ends_when_nothing_new_has_come_for_the_timeout(tmp_path, caplog):
    run = made_run(tmp_path / "a", finished=False)
    launcher = Evaluations()
    start = time.monotonic()
    watch(tmp_path, launcher, timeout=0.1).run()
    assert time.monotonic() - start < 20
    assert len(launcher.asked) == 3
    assert caplog.messages[-1] == f"No new checkpoint for 0s; {run} not finished."
    watch(tmp_path / "nowhere", launcher).run()
    assert caplog.messages[-1] == f"No new checkpoint for 0s; no run in {tmp_path / 'nowhere'}."


def test_an_evaluation_that_fails_is_told_and_tried_again_by_the_next_watch(tmp_path, caplog):
    run = made_run(tmp_path / "a")
    launcher = Evaluations(lambda _, step: None if step == 20 else {"loss": 1.0})
    first = watch(tmp_path, launcher)
    first.run()
    assert launcher.asked == [("a", 10), ("a", 20), ("a", 30)]
    assert len(first.failed) == 1
    assert f"{run} step 20 failed: it broke.\n  its log: {run / 'evaluations'}" in caplog.text
    assert [line.get("failed") for line in lines_of(run)] == [None, "it broke.", None]
    again = Evaluations()
    second = watch(tmp_path, again)
    second.run()
    assert again.asked == [("a", 20)]
    assert not second.failed


def test_checkpoints_and_runs_that_vanish_are_survived(tmp_path, caplog):
    runs = {name: made_run(tmp_path / name) for name in "ab"}

    def vanish(run, step):
        if run.endswith("a") and step == 10:
            shutil.rmtree(runs["a"] / "checkpoints" / "step-00000010")
            shutil.rmtree(runs["a"] / "checkpoints" / "step-00000020")
            return None
        if run.endswith("a"):
            shutil.rmtree(runs["a"])
            raise FileNotFoundError
        return {"loss": 1.0}

    watched = watch(tmp_path, Evaluations(vanish))
    assert watched.run() == [runs["b"]]
    assert not watched.failed
    gone = "it was deleted before it was evaluated. trainer.keep says how many stay."
    assert f"{runs['a']} step 10: {gone}\n  its log: {runs['a']}" in caplog.text
    assert f"{runs['a']} step 20: {gone}" in caplog.messages
    assert len(lines_of(runs["b"])) == 3


def test_values_that_a_killed_watch_left_are_taken(tmp_path):
    run = made_run(tmp_path / "a", steps=(10, 20), best=10)
    (run / "evaluations").mkdir()
    first, _ = watch(tmp_path, Evaluations()).pending([run])
    first.file(".json").write_text('{"valid_data": {"loss": 7.0}}')
    launcher = Evaluations(lambda run, step: {"loss": 8.0})
    watch(tmp_path, launcher).run()
    assert launcher.asked == [("a", 20)]
    assert [line["values"]["valid_data"]["loss"] for line in lines_of(run)] == [7.0, 8.0]


def test_a_second_watch_leaves_the_run_to_the_first(tmp_path, caplog):
    run = made_run(tmp_path / "a")
    (run / "evaluations").mkdir()
    launcher = Evaluations()
    with Lock(run / "evaluations"):
        watch(tmp_path, launcher).run()
    assert launcher.asked == []


def test_a_link_to_elsewhere_is_not_written_through(tmp_path):
    run = made_run(tmp_path / "runs" / "a")
    (tmp_path / "elsewhere").mkdir()
    (run / "evaluations").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(StorageError):
        watch(tmp_path / "runs", Evaluations()).run()
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_a_signal_ends_it(tmp_path):
    made_run(tmp_path / "a", finished=False)

    def stops(*_):
        signal.raise_signal(signal.SIGTERM)
        return {"loss": 1.0}

    with pytest.raises(RunStoppedError, match=r"^Stopped by SIGTERM\. The same command goes on"):
        watch(tmp_path, Evaluations(stops), timeout=60).run()


def test_a_timeout_that_is_none_is_refused(tmp_path, capfd):
    assert main(["watch", str(tmp_path), "--timeout", "soon"]) == 2
    assert "error: --timeout: wanted a duration like '20m'" in capfd.readouterr().err


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_killed_and_started_again_each_checkpoint_is_evaluated_once(monkeypatch, tmp_path, capfd):
    """By real processes."""
    folder = quick(monkeypatch, tmp_path / "watched")
    steps = ["trainer.max_steps=4", "trainer.save_every=1", "trainer.keep=9"]
    assert main(["train", "tiny.py", *steps, "--run-dir", "runs/a"]) == 0
    environment = {**os.environ, "PATH": f"{warm_programs()}{os.pathsep}{os.environ['PATH']}"}
    command = ["watch", "runs", "--timeout", "60s"]
    watcher = subprocess.Popen([str(warm_programs() / "textmill"), *command], env=environment)
    run = folder / "runs" / "a"
    wait_until(lambda: any(run.glob("evaluations/step-*.txt")))
    watcher.kill()
    watcher.wait()
    wait_until(lambda: not owner_of(run / "evaluations"))  # a keeper kills the warm one
    assert main(command) == 0
    assert sorted(line["step"] for line in lines_of(run)) == [1, 2, 3, 4]
    assert capfd.readouterr().out.splitlines()[-1].split()[:3] == ["runs/a", "4", "step-00000004"]
    evaluated = lines_of(run)[-1]["values"]["valid_data"]["loss"]
    seen = [json.loads(line) for line in (run / "metrics.jsonl").read_text().splitlines()]
    assert evaluated == pytest.approx(next(x for x in seen if x["split"] == "valid")["loss"])
