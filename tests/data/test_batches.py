"""Batches of an epoch, stopped and resumed at every position."""

import numpy as np
import pytest

from tests.data.resuming import resumed_everywhere
from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.errors import DataError
from textmill.text.ragged import Ragged

BATCHINGS = [
    Batching(max_tokens=40),
    Batching(max_tokens=40, shuffle=False),
    Batching(batch_size=3),
    Batching(batch_size=3, shuffle=False),
]


def make(batching, **more):
    rng = np.random.default_rng(0)
    lengths = rng.integers(1, 9, 41)
    column = Ragged.from_lists([[1] * n for n in lengths])
    return EpochBatches(
        {"source": column, "target": column}, batching, lambda rows: rows.tolist(), seed=11, **more
    )


@pytest.mark.parametrize("batching", BATCHINGS)
def test_resumed_at_every_position_it_goes_on_as_undisturbed(batching):
    batches, epochs = resumed_everywhere(lambda: make(batching), 3)
    assert batches.state_dict() == {"epoch": 3, "position": 0}
    for found in epochs:
        assert sorted(i for batch in found for i in batch) == list(range(batches.num_rows))


def test_a_loop_left_early_keeps_its_position():
    batches = make(BATCHINGS[2])
    whole = list(make(BATCHINGS[2]))
    seen = []
    for batch in batches:
        seen.append(batch)
        if len(seen) == 4:
            break
    assert batches.state_dict() == {"epoch": 0, "position": 4}
    assert seen + list(batches) == whole


def test_the_state_after_the_last_batch_has_an_empty_rest():
    batches = make(BATCHINGS[2])
    iterator = iter(batches)
    for _ in range(len(batches)):
        next(iterator)
    assert batches.state_dict() == {"epoch": 0, "position": 14}
    assert list(batches) == []
    assert batches.state_dict() == {"epoch": 1, "position": 0}


@pytest.mark.parametrize("world_size", [1, 2, 5])
def test_ranks_share_every_batch(world_size):
    whole = list(make(BATCHINGS[2]))
    shares = [list(make(BATCHINGS[2], rank=r, world_size=world_size)) for r in range(world_size)]
    assert {len(share) for share in shares} == {len(whole)}
    for step, rows in enumerate(whole):
        assert sorted(i for share in shares for i in share[step] or ()) == sorted(rows)


def test_rows_that_take_part_are_planned_as_if_there_were_no_others():
    random = np.random.default_rng(2)
    column = Ragged.from_lists([[1] * n for n in random.integers(1, 30, 300)])
    chosen = np.flatnonzero(random.random(300) < 0.7)
    batching = Batching(max_tokens=90)
    alone = EpochBatches({"a": column.take(chosen)}, batching, lambda rows: rows, seed=4)
    among = EpochBatches({"a": column}, batching, lambda rows: rows, seed=4, rows=chosen)
    assert (among.num_rows, among.statistics) == (len(chosen), alone.statistics)
    for _ in range(2):
        pairs = list(zip(alone, among, strict=True))
        assert all(np.array_equal(chosen[a], b) for a, b in pairs)
    with pytest.raises(DataError, match=r"^There are no rows to make batches of\.$"):
        EpochBatches({"a": column}, batching, len, seed=1, rows=chosen[:0])
