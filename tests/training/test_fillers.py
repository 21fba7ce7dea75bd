"""What a rank computes with where it has no row of a batch, and all ranks compute together."""

import numpy as np

from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching, Filler
from textmill.data.block_batches import Blocking, TextBlocks
from textmill.runtime.devices import Env
from textmill.text.ragged import Ragged
from textmill.training.sources import shared_batches


class TwoRanks:
    env, size = Env(rank=1, world_size=2), 2


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


class Ready:
    epoch = 0

    def __iter__(self):
        return iter("abc")

    def state_dict(self):
        return {}


def test_ready_batches_are_filled_whole():
    batches = list(shared_batches(Ready(), TwoRanks(), fill=True))
    assert batches == [Filler("a"), "b", Filler("c")]
    assert list(shared_batches(Ready(), TwoRanks())) == [None, "b", None]
