"""Killed at any step and started again: bitwise the undisturbed run."""

import random

import numpy as np
import pytest
import torch

from tests.training.bench import (
    AsksAt,
    KillAt,
    Killed,
    Rows,
    differences,
    killed_and_resumed,
    outcome,
    prove,
    sentences,
    undisturbed,
)
from textmill.checkpoint import Checkpoints
from textmill.data.pipeline import from_sequence
from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.tasks import Translation
from textmill.training import Every, Selection

STEPS = 12


@pytest.mark.parametrize(
    ("save_every", "steps"),
    [
        ("4", (3, 6)),
        pytest.param("4", range(1, STEPS + 1), marks=pytest.mark.slow),
        # what is saved at each step is restored at each
        pytest.param("1", range(1, STEPS + 1, 2), marks=pytest.mark.slow),
        # saved after evaluations alone: before the first, after each
        pytest.param("1000", (3, 11), marks=pytest.mark.slow),
    ],
)
def test_killed_after_any_step(bench, save_every, steps):
    """Dropout, accumulation with a shorter last group, reports, evaluations in mid-epoch."""
    prove(bench.but(trainer={"save_every": Every.parse(save_every), "accumulate": 3}), steps)


@pytest.mark.slow
@pytest.mark.parametrize(("event", "steps"), [("evaluated", (5, 12)), ("saved", (3, 10))])
def test_killed_after_any_evaluation_or_save(bench, event, steps):
    prove(bench, steps=steps, event=event)


def test_killed_at_the_very_end_and_at_the_start(bench):
    wanted = outcome(undisturbed(bench))
    kills = KillAt(0, "start"), KillAt(12, "end"), KillAt(12, "start")
    found = outcome(killed_and_resumed(bench, *kills, folder="ends"))
    assert differences(wanted, found) == []


def test_killed_between_a_save_and_its_mark_as_best(bench, monkeypatch):
    wanted = outcome(undisturbed(bench))
    mark = Checkpoints.mark_best

    def dies(self, step):
        if step == 12:
            raise Killed
        mark(self, step)

    here = bench.but(folder=bench.folder / "mark")
    monkeypatch.setattr(Checkpoints, "mark_best", dies)
    with pytest.raises(Killed):
        here.make().fit()
    monkeypatch.undo()
    trainer = here.make()
    assert trainer.checkpoints.last().name != trainer.checkpoints.best().name
    trainer.fit()
    assert differences(wanted, outcome(trainer)) == []


def test_valid_data_that_is_shuffled_is_the_same_in_every_evaluation(bench):
    """Sums of floats depend on their order: a resumed run must not have another one."""
    data = lambda: Rows(sentences()[20:], batch_size=3, shuffle=True)  # noqa: E731
    prove(bench.but(valid_data=data), (6,))


def test_without_valid_data_the_last_is_tested(bench):
    bench = bench.but(valid_data=None)
    wanted = outcome(undisturbed(bench))
    assert "best" not in wanted["summary"]
    assert differences(wanted["tested weights"], wanted["model"]) == []
    prove(bench, (12,))


class OwnBatches:
    """Batches of a recipe's own, without a state: they draw from the global generators."""

    def __init__(self, tokenizer, *, augment=True):
        encode = tokenizer.create_encoder(mode="source"), tokenizer.create_encoder(mode="target")
        self.pairs = [(encode[0](r["source"]), encode[1](r["target"])) for r in sentences()[:28]]
        self.pad, self.augment = tokenizer.vocab_info.pad_idx, augment

    def __iter__(self):
        order = list(range(28))
        random.shuffle(order)
        for start in range(0, 28, 5):
            pairs = [self.pairs[i] for i in order[start : start + 5]]
            if self.augment:  # drawn while the batch is made, one batch ahead of its step
                cut = random.randrange(2) + int(np.random.randint(2))  # noqa: NPY002
                pairs = [(source[cut:], target) for source, target in pairs]
            yield self.batch(pairs)

    def batch(self, pairs):
        source, target = (
            torch.nn.utils.rnn.pad_sequence(
                [torch.tensor(ids, dtype=torch.int64) for ids in column],
                batch_first=True,
                padding_value=self.pad,
            )
            for column in zip(*pairs, strict=True)
        )
        return Seq2SeqBatch.from_padded(source, target, pad_idx=self.pad)


@pytest.mark.slow
def test_batches_in_a_list_are_resumed_by_their_number(bench):
    """Also beside a task that draws from the global generators, whose state is saved."""
    pairs = OwnBatches(bench.tokenizer, augment=False)
    given = [pairs.batch(pairs.pairs[start : start + 5]) for start in range(0, 28, 5)]
    here = bench.but(
        train_data=lambda: given, task_class=DrawsInStep, trainer={"save_every": Every(1)}
    )
    prove(here, (1, 3, 8))
    data = here.make().data.first.groups
    next(data)
    assert data.state_dict()["data"] == {"epoch": 0, "position": 2}


class DrawsInStep(Translation):
    """A task that draws from the global generators in its step, as random masking does."""

    def training_step(self, batch, examples=()):
        loss = super().training_step(batch, examples)
        random.random()
        return loss


@pytest.mark.parametrize(
    "task_class", [Translation, pytest.param(DrawsInStep, marks=pytest.mark.slow)]
)
def test_batches_of_ones_own_are_replayed(bench, task_class):
    data = lambda: OwnBatches(bench.tokenizer)  # noqa: E731
    here = bench.but(train_data=data, task_class=task_class, trainer={"save_every": Every(1)})
    prove(here, (8,))


@pytest.mark.parametrize("prefetch", [pytest.param(0, marks=pytest.mark.slow), 2])
def test_a_pipeline_of_batches_is_resumed_by_its_state(bench, prefetch):
    def pipeline():
        own = OwnBatches(bench.tokenizer, augment=False)
        chain = from_sequence(own.pairs).shuffle(28, seed=4).bucket(5).map(own.batch)
        return (chain.prefetch(prefetch) if prefetch else chain).and_return()

    prove(bench.but(train_data=pipeline, trainer={"save_every": Every(1)}), (3,))


def test_a_request_to_stop_survives_a_kill(bench):
    bench = bench.but(callbacks=lambda: [AsksAt("step", 7)])
    wanted = outcome(undisturbed(bench))
    assert wanted["steps"][0] == 7
    assert wanted["history"][-1][0] == 7  # what ends is evaluated
    found = outcome(killed_and_resumed(bench, KillAt(7, "end"), folder="asked"))
    assert differences(wanted, found) == []


def test_early_stopping_survives_a_kill(bench):
    patience = Selection.Config(metric="accuracy", better="lower", patience=1)
    bench = bench.but(trainer={"selection": patience, "evaluate_every": Every(2)})
    wanted = outcome(undisturbed(bench))
    assert wanted["steps"][0] < STEPS
    kill = KillAt(wanted["steps"][0], "end")
    found = outcome(killed_and_resumed(bench, kill, folder="stalled"))
    assert differences(wanted, found) == []
