"""Epochs of many rows are planned in windows: a global order that needs no memory."""

import numpy as np
import pytest

from tests.data.resuming import resumed_everywhere
from tests.data.test_batches import make
from textmill.data import mixture as orders
from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.data.mixture import permuted, window_of
from textmill.text.ragged import Ragged

BATCHINGS = [Batching(max_tokens=40), Batching(batch_size=3), Batching(batch_size=20)]


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """41 rows are many."""
    monkeypatch.setattr(orders, "WHOLE_ROWS", 20)
    monkeypatch.setattr(orders, "WINDOW_ROWS", 10)


@pytest.mark.parametrize("count", [1, 2, 5, 16, 17, 1000, 4097])
def test_a_permutation_has_each_number_once_whatever_is_asked_for(count):
    whole = permuted(np.arange(count), count, [7, 1])
    assert sorted(whole.tolist()) == list(range(count))
    some = np.array([count - 1, 0, count // 2, 0])
    assert permuted(some, count, [7, 1]).tolist() == whole[some].tolist()


@pytest.mark.parametrize("batching", BATCHINGS)
def test_resumed_at_every_place_it_goes_on_as_undisturbed(batching):
    ended, _ = resumed_everywhere(lambda: make(batching), 2, has_length=False)
    assert ended.num_windows == (3 if batching.batch_size == 20 else 5)
    assert ended.state_dict() == {"epoch": 2, "position": 0, "window": 0, "at": 0}


@pytest.mark.parametrize("batching", BATCHINGS)
@pytest.mark.parametrize("rows", [None, np.arange(3, 41)])
def test_an_epoch_has_every_row_once_in_another_order_each_time(batching, rows):
    batches = make(batching, rows=rows)
    orders = []
    for _ in range(3):
        found = list(batches)
        if batching.batch_size is not None:
            assert len(found) == len(batches)
        else:  # as if all windows had as many batches as the first
            assert abs(len(found) - len(batches)) <= 2 * batches.num_windows
        orders.append([row for batch in found for row in batch])
        assert sorted(orders[-1]) == (list(range(41)) if rows is None else rows.tolist())
    assert len({*map(tuple, orders)}) == 3


def test_rows_of_a_window_are_from_all_over_the_data_and_of_like_length():
    column = Ragged.from_lists([[1] * (n % 7) for n in range(41)])
    batching = Batching(batch_size=5)
    batches = EpochBatches({"a": column}, batching, lambda rows: rows.tolist(), seed=1)
    window = [row for batch in batches.plan for row in batch]
    assert len(window) == window_of(41, 5) == 10
    assert max(window) > 30
    assert min(window) < 10
    first, second = ([row % 7 for row in batch] for batch in batches.plan)
    assert max(min(first), min(second)) >= min(max(first), max(second))


def test_without_shuffling_and_of_fewer_rows_an_epoch_is_planned_at_once():
    assert make(Batching(batch_size=3, shuffle=False)).num_windows == 1
    assert make(Batching(batch_size=3), rows=np.arange(20)).num_windows == 1
