"""What the ranks of a run share: whole batches that a recipe made."""

import logging
from types import SimpleNamespace

from textmill.tasks.batches.user_batches import ready_batches
from textmill.training.sources import shared_batches, tell_idle


def ranks(rank, size):
    return SimpleNamespace(size=size, env=SimpleNamespace(rank=rank))


def test_ready_batches_are_shared_whole_and_in_order():
    batches = [shared_batches(ready_batches([1, 2, 3], read=list), ranks(r, 2)) for r in (0, 1)]
    assert [list(each) for each in batches] == [[1, None, 3], [None, 2, None]]
    assert [len(each) for each in batches] == [3, 3]
    iterator = iter(batches[1])
    next(iterator)
    place = batches[1].state_dict()
    again = shared_batches(ready_batches([1, 2, 3], read=list), ranks(1, 2))
    again.load_state_dict(place)
    assert place == batches[0].state_dict() | {"position": 1, "epoch": 1}
    assert list(again) == [2, None]


def test_ranks_without_a_batch_in_a_step_are_told(caplog):
    batches = shared_batches(ready_batches([1, 2, 3], read=list), ranks(0, 2))
    with caplog.at_level(logging.WARNING, "textmill"):
        tell_idle(batches, 2, ranks(0, 2))
        assert caplog.text == ""
        tell_idle(batches, 1, ranks(0, 2))
    assert "trainer.accumulate=1 only 1 of 2 ranks work in a step. Give rows, or set" in caplog.text
