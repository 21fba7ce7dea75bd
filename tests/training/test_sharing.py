"""What a rank computes with where it has no row of a batch, and all ranks compute together."""

import logging
from itertools import zip_longest
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching, Filler
from textmill.data.block_batches import Blocking, TextBlocks
from textmill.data.column_batch import ColumnBatch
from textmill.data.seq2seq_batch import Seq2SeqBatch
from textmill.tasks.batches.user_batches import ReadyBatches
from textmill.text.ragged import Ragged
from textmill.training.sources import shared_batches


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


@pytest.mark.parametrize(
    ("accumulate", "fill", "words"),
    [
        (2, False, []),
        (1, False, ["trainer.accumulate=1 only 1 of 2 ranks work in a step. Give rows, textmill"]),
        (2, True, ["each rank computes with all of them"]),
    ],
)
def test_ranks_without_a_batch_in_a_step_are_told_once(caplog, accumulate, fill, words):
    ready = ReadyBatches([1, 2, 3], read=list)
    batches = shared_batches(ready, ranks(0, 2), fill=fill, accumulate=accumulate)
    empty = Filler(2) if fill else None
    with caplog.at_level(logging.WARNING, "textmill"):
        assert [*batches, *batches] == [1, empty, 3, 1, empty, 3]
    assert len(caplog.messages) == len(words)
    assert all(each in message for each, message in zip(words, caplog.messages, strict=True))


def column_batch(ids):
    return ColumnBatch(
        columns={"text": torch.tensor(ids), "label": torch.arange(len(ids))},
        lengths={"text": torch.tensor([len([i for i in row if i]) for row in ids])},
    )


def seq2seq_batch(ids):
    padded = torch.tensor(ids)
    return Seq2SeqBatch.from_padded(padded, padded, pad_idx=0)


@pytest.mark.parametrize("make", [column_batch, seq2seq_batch])
def test_the_rows_of_a_ready_batch_of_textmills_are_divided(make, caplog):
    """Of three batches of 3, 1 and 2 rows the second has none for one rank of two."""
    given = [make(ids) for ids in ([[5, 6], [7, 0], [8, 9]], [[4, 4]], [[3, 2], [1, 0]])]
    whole = dict(enumerate(given))
    shares = [
        list(shared_batches(ReadyBatches(given, read=list), ranks(r, 2), fill=fill, accumulate=1))
        for r in (0, 1)
        for fill in (False, True)
    ]
    for first, filled, rank in ((shares[0], shares[1], 0), (shares[2], shares[3], 1)):
        assert [None if b is None else len(b) for b in first] == [2 - rank, [1, None][rank], 1]
        assert isinstance(filled[1], Filler) is (rank == 1)
    columns = {
        name: [
            torch.stack([row for pair in zip_longest(*parts) for row in pair if row is not None])
            for parts in (
                [column_of(share[n], name) for share in (shares[0], shares[2]) if share[n]]
                for n in whole
            )
        ]
        for name in ("text", "length")
    }
    for name, found in columns.items():
        assert all(torch.equal(column_of(whole[n], name), found[n]) for n in whole)
    assert caplog.text == ""


def column_of(batch, name):
    if isinstance(batch, ColumnBatch):
        return batch["text"] if name == "text" else batch.lengths["text"]
    return batch.source if name == "text" else batch.source_lengths
