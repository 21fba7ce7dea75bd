"""What a rank computes with where it has no row of a batch, and all ranks compute together."""

import logging
from types import SimpleNamespace

import numpy as np

from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching, Filler
from textmill.data.block_batches import Blocking, TextBlocks
from textmill.tasks.batches.user_batches import ReadyBatches
from textmill.text.ragged import Ragged
from textmill.training.sources import shared_batches, tell_idle


def test_a_batch_of_one_row_is_filled_with_that_row():
    column = Ragged.from_lists([[1], [2, 3], [4]])
    batching = Batching(batch_size=2, shuffle=False)
    batches = EpochBatches({"ids": column}, batching, lambda rows: rows.tolist(), seed=1)
    whole = list(batches)
    batches.load_state_dict({"epoch": 0, "position": 0})
    shares = [list(batches.share(rank, 2, fill=True)) for rank in range(2)]
    alone = next(number for number, batch in enumerate(whole) if len(batch) == 1)
    assert shares[0][alone] == whole[alone]
    assert shares[1][alone] == Filler(whole[alone])
    assert list(batches.share(1, 2))[alone] is None


def test_a_rank_without_a_stream_reads_one_from_its_beginning():
    text = Ragged.from_lists([[5, 6, 3], [3, 4]])
    blocking = Blocking(length=2, batch_size=1, streams=True)
    share = list(TextBlocks(text, [{}] * 2, blocking, before=3).share(1, 2, fill=True))
    whole = list(TextBlocks(text, [{}] * 2, blocking, before=3))
    assert all(isinstance(batch, Filler) for batch in share)
    assert [np.asarray(f.batch.targets).tolist() for f in share] == [
        np.asarray(batch.targets).tolist() for batch in whole
    ]
    assert all(filler.batch.begins for filler in share)  # no state of others is put into it


def ranks(rank, size):
    return SimpleNamespace(size=size, env=SimpleNamespace(rank=rank))


def test_ready_batches_are_filled_whole():
    batches = shared_batches(ReadyBatches(["a", "b", "c"], read=list), ranks(1, 2), fill=True)
    assert list(batches) == [Filler("a"), "b", Filler("c")]


def test_ready_batches_are_shared_whole_and_in_order():
    batches = [shared_batches(ReadyBatches([1, 2, 3], read=list), ranks(r, 2)) for r in (0, 1)]
    assert [list(each) for each in batches] == [[1, None, 3], [None, 2, None]]
    assert [len(each) for each in batches] == [3, 3]
    iterator = iter(batches[1])
    next(iterator)
    place = batches[1].state_dict()
    again = shared_batches(ReadyBatches([1, 2, 3], read=list), ranks(1, 2))
    again.load_state_dict(place)
    assert place == batches[0].state_dict() | {"position": 1, "epoch": 1}
    assert list(again) == [2, None]


def test_ranks_without_a_batch_in_a_step_are_told(caplog):
    batches = shared_batches(ReadyBatches([1, 2, 3], read=list), ranks(0, 2))
    with caplog.at_level(logging.WARNING, "textmill"):
        tell_idle(batches, 2, ranks(0, 2))
        assert caplog.text == ""
        tell_idle(batches, 1, ranks(0, 2))
    assert "trainer.accumulate=1 only 1 of 2 ranks work in a step. Give rows, or set" in caplog.text
