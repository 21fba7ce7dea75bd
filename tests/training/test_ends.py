"""How runs end: damage to the best checkpoint, interrupted evaluations, requests, lengths."""

import random
import shutil
import signal
from pathlib import Path

import numpy as np
import pytest

import textmill
from tests.training.bench import (
    Adverse,
    AsksAt,
    KillAt,
    Killed,
    Rows,
    differences,
    metrics_of,
    outcome,
    sentences,
)
from textmill.errors import RunStoppedError, UserError
from textmill.tasks import Translation
from textmill.training import Callback, Cosine, Every, InverseSquareRoot, Selection


def flipped(checkpoints):
    file = checkpoints.best() / "model.safetensors"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 16
    file.write_bytes(data)
    return f"checkpoint {checkpoints.best().name} skipped: "


def deleted(checkpoints):
    shutil.rmtree(checkpoints.best())
    return "best.json: it points to step-00000005, which is gone"


def unreadable(checkpoints):
    (checkpoints.folder / "best.json").write_text("{")
    return "best.json"


def every_one(checkpoints):
    for path in checkpoints.folder.glob("step-*"):
        (path / "model.safetensors").write_bytes(b"")
    return "The weights of the last step are used."


SLOW = [pytest.param(harm, marks=pytest.mark.slow) for harm in (flipped, unreadable, every_one)]


@pytest.mark.parametrize("harm", [deleted, *SLOW])
def test_a_damaged_best_checkpoint_does_not_keep_a_run_from_its_end(bench, caplog, harm):
    Adverse.calls = 0
    said, kept = [], {}

    class Harms(Callback):
        def saved(self, progress, checkpoint):
            module = trainer.task.module.state_dict()
            kept[progress.steps] = {name: value.clone() for name, value in module.items()}
            if progress.steps == 12:
                said.append(harm(trainer.checkpoints))

    trainer = bench.but(task_class=Adverse).make(Harms())
    trainer.fit()
    assert trainer.selection.best == (5, 1.0)
    used = 5 if harm is unreadable else 12  # the evaluations know it where only its pointer is gone
    lines = [message for message in caplog.messages if said[0] in message]
    assert len(lines) == 1
    assert harm is every_one or lines[0].endswith(f"; using step-{used:08d}")
    assert differences(kept[used], dict(trainer.task.module.state_dict())) == []
    assert trainer.summary.get("weights", {"step": 5}) == {"step": used}


class DrawsInEvaluation(Translation):
    """Draws from the host's generators in its validation, and sends a signal at one batch."""

    at, seen = 0, 0

    def validation_step(self, batch, examples):
        type(self).seen += 1
        self.drawn.append((random.random(), float(np.random.rand())))  # noqa: NPY002
        if type(self).seen == self.at:
            signal.raise_signal(signal.SIGTERM)
        return super().validation_step(batch, examples)

    def training_step(self, batch, examples=()):
        self.drawn.append((random.random(), float(np.random.rand())))  # noqa: NPY002
        return super().training_step(batch, examples)


@pytest.mark.slow
@pytest.mark.parametrize("at", [1, 2])
def test_a_stop_in_an_evaluation_that_draws_leaves_no_trace(bench, monkeypatch, at):
    def run(folder, at):
        monkeypatch.setattr(DrawsInEvaluation, "at", at)
        monkeypatch.setattr(DrawsInEvaluation, "seen", 0)
        monkeypatch.setattr(DrawsInEvaluation, "drawn", [], raising=False)
        trainer = bench.but(folder=folder, task_class=DrawsInEvaluation).make()
        if at:
            with pytest.raises(RunStoppedError):
                trainer.fit()
        else:
            trainer.fit()
        return trainer, DrawsInEvaluation.drawn

    wanted, drawn = run(bench.folder / "undisturbed", 0)
    _, before = run(bench.folder / "stopped", at)
    resumed, after = run(bench.folder / "stopped", 0)
    assert differences(outcome(wanted), outcome(resumed)) == []
    assert before == drawn[: len(before)]
    assert after == drawn[len(drawn) - len(after) :]


def test_a_request_at_the_start_ends_with_an_evaluation_and_a_checkpoint(bench):
    trainer = bench.make(AsksAt("start"))
    assert trainer.fit().steps == 0
    assert [line["split"] for line in metrics_of(bench.folder)] == ["valid", "test"]
    assert trainer.checkpoints.last().name == "step-00000000"
    assert trainer.selection.best[0] == 0
    again = bench.make()
    assert again.fit().steps == 0
    assert [line["split"] for line in metrics_of(bench.folder)] == ["valid", "test"]
    assert bench.make(max_steps=2).fit().steps == 2  # another length: it is to go on


def test_a_request_is_forgotten_when_the_run_is_given_another_length(bench):
    assert bench.make(AsksAt("step", 7)).fit().steps == 7
    assert bench.make().fit().steps == 7
    longer = bench.make(max_steps=14)
    assert longer.fit().steps == 14
    assert [seen.step for seen in longer.selection.history] == [5, 7, 10, 14]


def test_spent_patience_says_why_a_longer_run_ends_at_once(bench, caplog):
    Adverse.calls = 0
    patience = {"selection": Selection.Config(patience=1), "evaluate_every": Every(2)}
    here = bench.but(task_class=Adverse, trainer=patience)
    assert here.make().fit().steps == 4
    caplog.clear()
    assert here.make(max_steps=20).fit().steps == 4
    assert (
        "The run ends here: loss was not better since step 2, and trainer.selection.patience="
        "1 evaluations are spent." in caplog.messages
    )


class Ready:
    """Ready batches of a task, with or without a length."""

    def __init__(self, batches):
        self.batches = batches

    def __iter__(self):
        return iter(self.batches)


def ready(bench):
    rows = Rows(sentences()[:28], batch_size=4)
    return list(bench.make().task.batches(rows, train=True, seed=1))


def test_a_length_that_is_not_known_is_found_before_the_first_step(bench):
    batches = ready(bench)
    here = bench.but(
        train_data=lambda: Ready(batches),
        schedule=Cosine.Config(warmup_steps=1000).build(),
        trainer={"max_steps": None, "max_epochs": 2},
    )
    with pytest.raises(UserError, match=r"^The cosine schedule needs .* trainer\.max_steps"):
        here.make()
    assert here.but(train_data=lambda: batches).make().total == 8
    cools = InverseSquareRoot.Config(cooldown=0.1).build()
    with pytest.raises(UserError, match=r"^The inverse_square_root .* lr_scheduler\.cooldown=0\.$"):
        here.but(schedule=cools).make()


def test_a_batch_without_a_size_is_named(bench):
    with pytest.raises(UserError, match=r"rows of a dict .* Override Translation\.batch_size"):
        bench.make().task.batch_size({"n": 7})


def advised(values, *, metric="accuracy", error=0.0, **settings):
    """What is advised after an evaluation of each value, 100 steps apart."""
    config = Selection.Config(metric=metric, **settings)
    selection = config.build(directions={"accuracy": "higher", "loss": "lower"})
    for number, value in enumerate(values, 1):
        selection.see(100 * number, {"loss": 1.0, metric: value}, errors={metric: error})
    return selection.advice(100 * len(values), longer="trainer.max_steps=9")


def test_a_run_whose_best_step_came_early_is_told_of_patience():
    enough = (
        "The best step was 100 of 600: with trainer.selection.patience=3 the run would have ended "
        "at step 400, with the same weights."
    )
    early = [0.9, 0.8, 0.7, 0.8, 0.7, 0.6]
    assert advised(early) == [enough]
    assert advised(early, patience=5) == [], "it is known"
    assert advised([0.5, 0.6, 0.7, 0.9, 0.8, 0.7]) == []
    # After four that were not better comes the best: patience of five waits for it.
    late = [0.5, 0.4, 0.4, 0.4, 0.4, 0.9, *[0.8] * 20]
    [line] = advised(late)
    assert "step was 600 of 2,600: with trainer.selection.patience=5 the run" in line
    selection = Selection.Config(metric="accuracy", patience=5).build(
        directions={"accuracy": "higher", "loss": "lower"}
    )
    for step, value in enumerate(late, 1):
        selection.see(100 * step, {"accuracy": value, "loss": 1.0})
        if selection.stalled():
            break
    assert f"ended at step {100 * step:,}, with" in line
    assert selection.best == (600, 0.9)


def test_a_later_step_within_a_standard_error_of_the_best_says_why_it_is_taken():
    taken = (
        "Step 300 is taken: accuracy 89.0 % is within 2.0 % of the best, 90.0 % at step 200 "
        "(trainer.selection.standard_errors)."
    )
    assert advised([0.5, 0.9, 0.89, 0.8], error=0.02) == [taken]
    assert advised([0.5, 0.9, 0.89, 0.8], error=0.02, standard_errors=0.0) == []
    # Patience counts from the best value, and waits for the step that is taken.
    said = advised([0.9, 0.8, 0.8, 0.8, 0.89, *[0.7] * 20], error=0.02)
    assert "trainer.selection.patience=4 the run would have ended at step 500" in said[1]


class Remarks(Adverse):
    """Has something to say of each evaluation."""

    def remarks(self, metrics):
        return [f"This is evaluation {self.calls + 1}."]


def test_what_is_to_know_of_the_best_evaluation_outlives_a_kill(bench, caplog, monkeypatch):
    monkeypatch.setattr(Remarks, "calls", 0)
    here = bench.but(
        task_class=Remarks, test_data=None, trainer={"max_steps": 11, "save_every": Every(1)}
    )
    with pytest.raises(Killed):
        here.make(KillAt(8)).fit()
    assert Remarks.calls == 1
    here.make().fit()
    assert Remarks.calls == 3
    assert [m for m in caplog.messages if "evaluation" in m] == ["This is evaluation 1."]


TRAIN = """alarm/modify_alarm	change my alarm tomorrow to wake me up 30 minutes earlier
alarm/set_alarm	turn on all my alarms
alarm/set_alarm	sound alarm every 8 minutes
alarm/set_alarm	repeat yesterdays alarm
alarm/snooze_alarm	continue my alarm
alarm/time_left_on_alarm	do i have anymore time on the alarm
reminder/set_reminder	remind me monday night that get doe with work
reminder/show_reminders	display tuesday's reminders
weather/find	what is the weather tomorrow
weather/find	when will it snow
"""
TEST = """alarm/set_alarm	reactivate weekly alarm
alarm/set_alarm	set alarm to ring only on the weekdays
alarm/time_left_on_alarm	when will alarm go off
reminder/set_reminder	remind me tomorrow to call the groomer
"""


def test_warm_up_decay_patience_and_the_best_epoch_as_in_pytext(tmp_path, monkeypatch):
    """Rates of .0005, .001 and .0005, an end after epoch 3, and the test is the best epoch's."""
    monkeypatch.chdir(tmp_path)
    Path("train.tsv").write_text(TRAIN)
    Path("test.tsv").write_text(TEST)
    words = [
        "train_data.path=train.tsv", "valid_data.path=test.tsv", "train_data.batch_size=16",
        "optimizer.type=adam", "optimizer.lr=0.001",
        "lr_scheduler.type=exponential", "lr_scheduler.warmup_steps=2", "lr_scheduler.decay=0.5",
        "lr_scheduler.period=1", "trainer.accumulate=2", "trainer.clip_norm=1.0",
        "trainer.selection.metric=accuracy", "trainer.selection.patience=2",
        "trainer.max_epochs=10", "trainer.report_every=1 steps",
    ]  # fmt: skip
    run = textmill.run_experiment(
        "classification/docnn", "train", "run", [*words, "test_data.path=test.tsv"]
    )
    lines = metrics_of(run.folder)
    learned = [line for line in lines if line["split"] == "train"]
    assert [line["lr"] for line in learned] == [5e-4, 1e-3, 5e-4]
    assert [line["epoch"] for line in learned] == [1, 2, 3]
    (tested,) = [line for line in lines if line["split"] == "test"]
    (best,) = [
        line
        for line in lines
        if line["split"] == "valid" and line["step"] == run.result["best"]["step"]
    ]
    assert {"loss", "accuracy", "macro_f1"} <= tested.keys() & best.keys()
    own = ("split", "step", "epoch", "time")
    assert {k: v for k, v in tested.items() if k not in own} == {
        k: v for k, v in best.items() if k not in own
    }
