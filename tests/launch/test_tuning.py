"""A recipe is trained from each checkpoint of a run, once; only the best of those runs is kept."""

import json
import logging
import signal
from pathlib import Path

import pytest

from tests.launch.grids import in_process
from tests.launch.test_grid import Fake
from tests.runs.made_runs import made_run
from textmill.cli.main import main
from textmill.errors import RunStoppedError
from textmill.launch import watch as watch_module
from textmill.launch.watch import Watch
from textmill.launch.worth import Worth
from textmill.run_folder.folder import RunFolder, runs_in
from textmill.runtime.lock import Lock

PRETRAINED = """\
recipe: tiny.py
trainer: {max_steps: 6, save_every: 2, evaluate_every: 6, keep: 9}
reporters: {html: false}
"""
WATCH = ["watch", "pre", "--train", "pre.yaml", "--tune", "tuned.yaml", "optimizer.lr=1e-3"]


@pytest.fixture
def folder(monkeypatch, tmp_path, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    monkeypatch.setattr(watch_module, "PAUSE", 0.0)
    folder = in_process(monkeypatch, tmp_path / "watch")
    Path("pre.yaml").write_text(PRETRAINED)
    Path("tuned.yaml").write_text(PRETRAINED.replace("6", "2"))
    return folder


def lines_of(run):
    text = (run / "evaluations" / "evaluations.jsonl").read_text()
    return [json.loads(line) for line in text.splitlines()]


def test_one_command_pretrains_tunes_each_checkpoint_and_keeps_the_best(folder, capfd):
    assert main(WATCH) == 0
    run = Path("pre")
    assert RunFolder(run).result["steps"] == 6
    lines = lines_of(run)
    assert [line["step"] for line in lines] == [2, 4, 6]
    # A run says what it has measured: here in what it printed, since all but one are deleted.
    printed = {line["step"]: (run / f"{line['run']}.txt").read_text() for line in lines}
    losses = {line["step"]: line["values"]["valid_data"]["loss"] for line in lines}
    assert all(f"\nbest: loss {losses[step]:.3f} at step 2\n" in printed[step] for step in printed)
    assert all(f"from pre/checkpoints/step-0000000{step}:" in printed[step] for step in printed)
    assert {*lines[0]["values"]} == {"valid_data", "test_data"}
    (best,) = json.loads((run / "evaluations" / "best.json").read_text())
    assert best["step"] == min(losses, key=losses.get)
    assert best["value"] == min(losses.values())
    assert runs_in(run) == [run, run / best["run"]]
    shown = capfd.readouterr().out.splitlines()[-1].split()
    assert shown[:3] == ["pre", "3", f"pre/{best['run']}"]
    # The same again: nothing is trained; with another length in the file, all of it.
    assert main(WATCH) == 0
    assert lines_of(run) == lines
    tuned = Path("tuned.yaml")
    tuned.write_text(tuned.read_text().replace("max_steps: 2", "max_steps: 3"))
    assert main(WATCH) == 0
    assert [line["step"] for line in lines_of(run)] == [2, 4, 6, 2, 4, 6]
    assert len(runs_in(run)) == 3


@pytest.mark.parametrize(
    ("words", "error"),
    [
        (["optimizer.lrr=1"], "optimizer has no setting 'lrr'"),
        (["train_data.path=none.tsv"], "there is no file none.tsv"),
        (["valid_data=null"], "compared on its valid_data, and tuned.yaml has none"),
        (["--tune", "staged.yaml"], "staged.yaml is a run, or makes several"),
        (["--train", "none.yaml"], "none.yaml: cannot be read"),
        (["--jobs", "0"], "--jobs is 0"),
    ],
)
def test_what_cannot_be_trained_is_told_before_anything_runs(folder, capfd, words, error):
    Path("staged.yaml").write_text("recipe: tiny.py\nstages: {one: {model: {dim: 32}}}\n")
    assert main([*WATCH, *words]) == 2
    assert error in capfd.readouterr().err
    assert not Path("pre").exists()


class Tuned(Worth):
    """Each checkpoint is worth the result of a run below it, as of a Tuning."""

    def found(self, checkpoint):
        run = RunFolder(checkpoint.file())
        place = f"evaluations/{checkpoint.place}"
        ended = {"values": {"valid_data": run.result.get("best")}, "run": place}
        return ended if run.finished else None


class Runs:
    """Starts no process: each job leaves a run, ends as the test says, and can be stopped."""

    threads = 1

    def __init__(self, do, jobs=2):
        self.do, self.jobs, self.started, self.all = do, jobs, [], []

    def start(self, words, log, name):
        self.started.append(" ".join(words[:2]))
        log.parent.mkdir(parents=True, exist_ok=True)
        log.write_text("error: it broke.\n")
        self.all.append(Fake(name, self.do(Path(name))))
        return self.all[-1]


def watched(root, launcher, **options):
    return Watch(root, Tuned([]), launcher, timeout=60, **options)


def test_what_a_killed_watch_began_is_waited_for_and_its_results_are_taken(folder):
    run = made_run(Path("pre"), selected_by={"metric": "bleu", "better": "higher"})
    (run / "evaluations").mkdir()
    first, second, third = (c.file() for c in watched(run, Runs(None)).pending([run]))
    made_run(first)
    made_run(second, finished=False)
    made_run(gone := run / "evaluations" / "step-00000005-00000000", finished=False)
    lock = Lock(second).__enter__()

    def train(name):
        lock.__exit__()  # the process of the killed watch ends, unfinished
        RunFolder(name).write_info(finished=True, result={"best": {"bleu": 1.0}})
        return 0

    def begin(name):
        return train(made_run(name)) if not name.exists() else train(name)

    watched(run, launcher := Runs(begin, jobs=1)).run()
    assert len(launcher.started) == 2
    assert sorted(line["step"] for line in lines_of(run)) == [10, 20, 30]
    assert runs_in(run) == [run, first]
    assert not gone.exists()
    assert not third.exists()


def test_a_training_that_fails_is_told_with_its_log_and_what_it_saved_is_measured(folder, caplog):
    def do(name):
        made_run(name, steps=(10,), finished=name != Path("pre"))
        return int(name == Path("pre"))

    failing = watched(Path("pre"), launcher := Runs(do), train=["train", "pre.yaml"])
    failing.run()
    assert failing.trained == 1
    assert "Training pre failed: it broke.\n  its log: pre.txt" in caplog.text
    assert len(launcher.started) == 2


def test_a_signal_lets_all_save_and_end(folder):
    def do(name):
        if name == Path("pre"):
            made_run(name, finished=False)
        else:
            signal.raise_signal(signal.SIGTERM)

    stopped = watched(Path("pre"), launcher := Runs(do), train=["train", "pre.yaml"])
    with pytest.raises(RunStoppedError):
        stopped.run()
    assert [job.stopped for job in launcher.all] == [True, True]
