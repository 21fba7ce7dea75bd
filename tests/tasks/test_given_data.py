"""What data may be: rows or ready batches, told from one another; rows that have no end."""

import itertools

import pytest
import torch

from tests.tasks.conftest import ROWS
from tests.tasks.test_conformance import Data
from textmill.data import BatchedRows
from textmill.data.pipeline import from_sequence
from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.errors import DataError
from textmill.tasks import Translation, evaluate
from textmill.tasks.batches import row_batches
from textmill.tasks.batches.row_batches import is_row
from textmill.tasks.batches.user_batches import ReadyBatches


class OfDictionaries(Translation):
    """Takes batches that are dictionaries of tensors."""

    def batch(self, given):
        return Seq2SeqBatch.from_padded(given["source"], given["target"], pad_idx=self.pad_idx)

    def training_step(self, batch, examples=()):
        return super().training_step(self.batch(batch), examples)

    def validation_step(self, batch, examples):
        assert examples == [{}] * len(batch["source"])
        return super().validation_step(self.batch(batch), [{"references": []}] * len(examples))


def dictionaries(task):
    ready = task.batches(Data(batch_size=4), train=True, seed=1)
    return [{"source": batch.source, "target": batch.target} for batch in ready]


def test_batches_that_are_dictionaries_are_trained_on_and_evaluated(make_task):
    """Under the names of the task's columns too: what tells a row is that it holds text."""
    task = make_task(OfDictionaries)
    given = dictionaries(task)
    batches = task.batches(given, train=True, seed=1)
    assert isinstance(batches, ReadyBatches)
    assert [batch is wanted for batch, wanted in zip(batches, given, strict=True)] == [True] * 3
    rows = make_task().batches(Data(batch_size=4), train=False, seed=1)
    for batch, wanted in zip(given, rows, strict=True):
        assert torch.equal(task.training_step(batch).total, make_task().training_step(wanted).total)
    found = evaluate(task, task.batches(given, train=False, seed=1)).values
    assert found["loss"] == pytest.approx(evaluate(make_task(), rows).values["loss"])


@pytest.mark.parametrize(
    ("batch", "kind"),
    [
        ({"source": torch.zeros(2, 3), "target": torch.zeros(2, 3)}, "dict"),
        ({"source": ["Go."], "target": ["Va !"]}, "dict"),
        ((torch.zeros(2, 3), torch.zeros(2, 3)), "tuple"),
        (torch.zeros(2, 3), "Tensor"),
        ("Go.\tVa !", "str"),
    ],
)
@pytest.mark.parametrize("train", [True, False])
def test_batches_that_the_task_cannot_take_are_refused_before_the_first_step(
    make_task, train, batch, kind
):
    with pytest.raises(DataError) as caught:
        make_task().batches([batch], train=train, seed=1)
    assert str(caught.value).startswith(f"The data gives batches of type {kind}, but Translation")


@pytest.mark.parametrize(
    ("item", "row"),
    [
        ({"source": "Go.", "target": "Va !"}, True),
        ({"source": "Go.", "tags": ["short"]}, True),
        ({"src": "Go.", "line": 3}, True),
        ({"source": b"Go."}, True),
        ({}, True),
        ({"ids": torch.zeros(2, 3), "name": "Go."}, False),
        ({"loss_weight": torch.tensor(1.0)}, False),
        ("Go.", False),
    ],
)
def test_a_row_is_told_from_a_batch(item, row):
    assert is_row(item, ["source", "target"]) is row


class Endless:
    """Rows without an end, and without a length."""

    def __iter__(self):
        return itertools.cycle(ROWS)


@pytest.mark.parametrize(
    ("data", "name"),
    [(Endless(), "Endless"), (from_sequence(ROWS).repeat().and_return(), "DataPipeline")],
)
def test_rows_without_an_end_are_refused(make_task, monkeypatch, data, name):
    monkeypatch.setattr(row_batches, "MOST_ROWS", 20)
    with pytest.raises(DataError) as caught:
        make_task().batches(data, train=True, seed=1)
    assert str(caught.value).startswith(f"The data, a {name} without a length, gives more than 20")


def test_rows_of_a_script_have_the_batching_it_says(make_task):
    data = BatchedRows(ROWS, batch_size=4, shuffle=False)
    batches = make_task().batches(data, train=True, seed=1)
    assert [len(batch) for batch in batches] == [4, 4, 1]
    rows = [row for batch in make_task().batches(data, train=True, seed=1) for row in batch.rows]
    shuffled = BatchedRows(ROWS, max_tokens=60)
    assert (len(shuffled), list(shuffled)) == (9, ROWS)
    again = [r for b in make_task().batches(shuffled, train=True, seed=1) for r in b.rows]
    assert sorted(rows) == sorted(again) == list(range(9))
    assert rows != again
    sizes = [
        b.source.numel() + b.target.numel()
        for b in make_task().batches(shuffled, train=True, seed=1)
    ]
    assert max(sizes) <= 60 < sum(sizes)
