"""The loop's facts: accumulation, the end, the best, what is not finite, signals, callbacks."""

import math
import signal
from typing import ClassVar

import pytest
import torch

from tests.training.bench import Adverse, Rows, differences, metrics_of, outcome, sentences
from textmill.errors import NonFiniteError, RunStoppedError
from textmill.tasks import Loss, Translation
from textmill.training import Callback, Every, Selection


def weights(trainer):
    return {name: value.clone() for name, value in trainer.task.module.state_dict().items()}


def test_accumulated_batches_are_one_big_batch(bench):
    """A loss is a sum with a count: 4 batches of 7 give the step of 1 batch of 28."""
    steps = {"max_steps": 3, "evaluate_every": Every(100)}
    small = bench.but(
        folder=bench.folder / "small", dropout=0.0, eps=1.0, trainer={**steps, "accumulate": 4},
        train_data=lambda: Rows(sentences()[:28], batch_size=7, shuffle=False),
    )  # fmt: skip
    big = bench.but(
        folder=bench.folder / "big", dropout=0.0, eps=1.0, trainer={**steps, "accumulate": 1},
        train_data=lambda: Rows(sentences()[:28], batch_size=28, shuffle=False),
    )  # fmt: skip
    found = []
    # With eps = 1 a step is proportional to the gradient: none near 0 is blown up to full size.
    for each in (small, big):
        trainer = each.make()
        assert trainer.fit().epochs == 3
        found.append(outcome(trainer)["model"])
    for name, value in found[0].items():
        torch.testing.assert_close(value, found[1][name], rtol=0, atol=1e-6, msg=name)


def test_the_best_is_restored_for_the_test_and_early_stopping_saves_once(bench):
    Adverse.calls = 0
    patience = Selection.Config(metric="loss", patience=2)
    saved, kept = [], {}

    class Sees(Callback):
        def saved(self, progress, checkpoint):
            saved.append(progress.steps)

        def evaluated(self, progress, values):
            kept[progress.steps] = weights(trainer)

    trainer = bench.but(
        task_class=Adverse,
        trainer={"selection": patience, "evaluate_every": Every(2), "save_every": Every(1000)},
    ).make(Sees())
    assert trainer.fit().steps == 6
    assert saved == [2, 6]
    assert trainer.selection.best == (2, 1.0)
    assert differences(kept[2], weights(trainer)) == []
    assert differences(kept[2], kept[6]) != []
    assert trainer.summary["best"] == {"step": 2, "loss": 1.0}


class BreaksAt(Translation):
    """Its loss or its gradient is not a number at one step."""

    how, on = "loss", True

    def loss(self, logits, targets):
        found = super().loss(logits, targets)
        self.seen = getattr(self, "seen", 0) + 1
        if not (self.on and self.seen == 7):  # 7 batches an epoch, 2 a step: step 4 has one
            return found
        bad = torch.tensor(math.inf if self.how == "infinite" else math.nan)
        if self.how == "gradient":
            found.total.register_hook(lambda gradient: gradient * math.nan)
            return found
        return Loss(found.total + bad, found.count, found.sums)


@pytest.mark.parametrize(
    ("how", "says"),
    [
        ("loss", "The loss is nan at step 4"),
        pytest.param("infinite", "The loss is inf at step 4", marks=pytest.mark.slow),
        ("gradient", "The gradient norm is nan at step 4"),
    ],
)
def test_what_is_not_finite_never_reaches_the_weights(bench, monkeypatch, how, says):
    monkeypatch.setattr(BreaksAt, "how", how)
    bench = bench.but(task_class=BreaksAt, trainer={"save_every": Every(1)})
    trainer = bench.make()
    with pytest.raises(NonFiniteError) as caught:
        trainer.fit()
    rows = (
        trainer.task.batches(Rows(sentences()[:28], batch_size=4), train=True, seed=1)
        .batches.plan[6]
        .tolist()
    )
    text = f"{says}; this step did not touch the weights."
    assert str(caught.value).startswith(text)
    assert str(caught.value).endswith(
        "Lower optimizer.lr, lengthen lr_scheduler's warm-up, or look at these rows."
    )
    numbers = ", ".join(str(row + 1) for row in rows)
    assert f" Rows of train_data in this step: {numbers}. " in str(caught.value)
    assert caught.value.exit_code == 1
    saved = trainer.checkpoints.load_part(trainer.checkpoints.last(), "model")
    assert trainer.checkpoints.last().name == "step-00000003"
    assert differences(saved, weights(trainer)) == []
    monkeypatch.setattr(BreaksAt, "on", False)
    healed = bench.make()
    healed.fit()
    other = bench.but(folder=bench.folder / "other").make()
    other.fit()
    assert differences(outcome(other), outcome(healed)) == []


class SeesRows(Translation):
    """Notes what the rows of each training batch say, and the batch's own numbers of them."""

    seen: ClassVar[list[tuple[list[int], list[str]]]] = []

    def training_step(self, batch, examples=()):
        self.seen.append((batch.rows.tolist(), [row["source"] for row in examples]))
        assert [row["row"] for row in examples] == batch.rows.tolist()
        return super().training_step(batch, examples)


def test_a_training_step_is_given_the_rows_of_its_batch(bench, monkeypatch):
    monkeypatch.setattr(SeesRows, "seen", [])
    trainer = bench.but(task_class=SeesRows).make()
    trainer.fit()
    rows = trainer.data.data.rows
    assert {n for numbers, _ in SeesRows.seen for n in numbers} == set(range(len(rows)))
    for numbers, sources in SeesRows.seen:
        assert sources == [rows[n]["source"] for n in numbers]


class Signals(Translation):
    """Sends its own process a signal: in a training step, or in an evaluation."""

    number, training, at, seen = signal.SIGTERM, True, 5, 0

    def count(self):
        type(self).seen += 1
        if type(self).seen == self.at:
            signal.raise_signal(self.number)

    def training_step(self, batch, examples=()):
        if self.training:
            self.count()
        return super().training_step(batch, examples)

    def validation_step(self, batch, examples):
        if not self.training:
            self.count()
        return super().validation_step(batch, examples)


@pytest.mark.parametrize(
    ("training", "at", "step", "number"),
    [
        (True, 5, 3, signal.SIGINT),
        pytest.param(False, 7, 12, signal.SIGTERM, marks=pytest.mark.slow),
        pytest.param(False, 4, 10, signal.SIGTERM, marks=pytest.mark.slow),
    ],
)  # fmt: skip
def test_a_signal_saves_and_stops(bench, monkeypatch, *, number, training, at, step):
    """In a training step, in an evaluation and in the final test."""
    wanted = bench.but(folder=bench.folder / "undisturbed").make()
    wanted.fit()
    for name, value in (("number", number), ("training", training), ("at", at), ("seen", 0)):
        monkeypatch.setattr(Signals, name, value)
    handlers = [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    with pytest.raises(RunStoppedError) as caught:
        bench.but(task_class=Signals, trainer={"save_every": Every(1000)}).make().fit()
    assert handlers == [signal.getsignal(n) for n in (signal.SIGTERM, signal.SIGINT)]
    assert caught.value.exit_code == 128 + number
    assert str(caught.value).startswith(f"Stopped by {number.name} at step {step}; everything is")
    resumed = bench.make()
    resumed.fit()
    assert differences(outcome(wanted), outcome(resumed)) == []


def test_the_order_of_what_callbacks_see(bench):
    seen = []

    class Sees(Callback):
        def start(self, progress):
            seen.append(("start", progress.steps))

        def step(self, progress):
            seen.append(("step", progress.steps))

        def evaluated(self, progress, values):
            seen.append(("evaluated", progress.steps, "loss" in values))

        def saved(self, progress, checkpoint):
            seen.append(("saved", progress.steps, checkpoint.name))

        def end(self, progress):
            seen.append(("end", progress.steps))

    limits = {"max_steps": 3, "evaluate_every": Every(2), "save_every": Every(1000)}
    bench.make(Sees(), **limits).fit()
    assert seen == [
        ("start", 0), ("step", 1), ("step", 2), ("evaluated", 2, True),
        ("saved", 2, "step-00000002"), ("step", 3), ("evaluated", 3, True),
        ("saved", 3, "step-00000003"), ("end", 3),
    ]  # fmt: skip


def test_max_time_ends_a_run_with_an_evaluation(bench):
    from datetime import timedelta

    trainer = bench.make(max_steps=None, max_time=timedelta(milliseconds=1))
    assert trainer.fit().steps == 1
    assert [line["split"] for line in metrics_of(bench.folder)] == ["train", "valid", "test"]
