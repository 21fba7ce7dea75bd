"""Blocks of a text: every token once, after the one before it, in any batching."""

import itertools

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from tests.data.resuming import resumed_everywhere
from textmill.data.block_batches import Blocking, TextBlocks
from textmill.text.ragged import Ragged

END = 1


def text_of(lengths):
    """Rows of different ids, each ended by ``END``."""
    ids = iter(range(2, 10_000))
    rows = [[*(next(ids) for _ in range(n)), END] for n in lengths]
    return Ragged.from_lists(rows)


def blocks_of(lengths, **settings):
    text = text_of(lengths)
    rows = [{"text": str(row)} for row in range(len(lengths))]
    return TextBlocks(text, rows, Blocking(**settings), before=END)


def counted(batch):
    real = torch.ones_like(batch.targets, dtype=torch.bool)
    return real if batch.counted is None else batch.counted


sizes = st.integers(1, 9)
lengths = st.lists(st.integers(0, 6), min_size=1, max_size=8)


@given(lengths, sizes, sizes, st.booleans(), st.booleans(), st.integers(1, 9), st.integers(0, 3))
def test_every_token_is_a_target_once(rows, length, batch_size, streams, shuffle, stride, epochs):
    blocks = blocks_of(
        rows,
        length=length,
        batch_size=batch_size,
        streams=streams,
        shuffle=shuffle,
        stride=None if streams else min(stride, length),
        seed=5,
    )
    values = blocks.ids.values.tolist()
    wanted = sorted(zip([END, *values[:-1]], values, strict=True))
    for _ in range(epochs + 1):
        found, batches = [], list(blocks)
        for batch in batches:
            real = counted(batch)
            found += zip(batch.inputs[real].tolist(), batch.targets[real].tolist(), strict=True)
            assert batch.count == int(real.sum()) > 0
            assert batch.inputs.shape == batch.targets.shape
            assert len(batch) <= batch_size
            assert batch.inputs.shape[1] <= length
        assert sorted(found) == wanted
        assert [batch.begins for batch in batches] == [True] + [False] * (len(batches) - 1)
        assert len(batches) == len(blocks)


@given(lengths, sizes, sizes, st.booleans(), st.booleans())
def test_the_rows_of_targets_are_known(rows, length, batch_size, streams, shuffle):
    blocks = blocks_of(rows, length=length, batch_size=batch_size, streams=streams, shuffle=shuffle)
    row_of = {int(v): r for r, ids in enumerate(blocks.ids) for v in ids if v != END}
    seen = np.zeros(len(rows), int)
    for batch in blocks:
        assert [e["row"] for e in blocks.examples(batch)] == batch.rows.tolist()
        assert [e["text"] for e in blocks.examples(batch)] == [str(r) for r in batch.rows]
        assert batch.row_lengths.tolist() == [rows[r] + 1 for r in batch.rows]
        found = batch.rows[batch.row_of]
        np.add.at(seen, found, 1)
        for target, row in zip(batch.targets[counted(batch)].tolist(), found, strict=True):
            assert target == END or row_of[target] == row
    assert seen.tolist() == [n + 1 for n in rows]


@given(lengths, sizes, sizes)
def test_streams_go_on_where_they_ended(rows, length, batch_size):
    blocks = blocks_of(rows, length=length, batch_size=batch_size, streams=True)
    streams: dict[int, list[int]] = {}
    for batch in blocks:
        for row, (ids, real) in enumerate(zip(batch.targets, counted(batch), strict=True)):
            streams.setdefault(row, []).extend(ids[real].tolist())
    assert [t for row in sorted(streams) for t in streams[row]] == blocks.ids.values.tolist()
    sizes_of = list(map(len, streams.values()))
    assert max(sizes_of) - min(sizes_of) <= 1


def test_a_stride_gives_targets_a_longer_past():
    blocks = blocks_of([9], length=6, batch_size=1, streams=False, stride=2)
    found = [(batch.inputs[0].tolist(), batch.targets[counted(batch)].tolist()) for batch in blocks]
    assert found == [
        ([1, 2, 3, 4, 5, 6], [2, 3, 4, 5, 6, 7]),
        ([3, 4, 5, 6, 7, 8], [8, 9]),
        ([5, 6, 7, 8, 9, 10], [10, 1]),
    ]


@pytest.mark.parametrize("streams", [True, False])
@pytest.mark.parametrize("shuffle", [True, False])
def test_it_goes_on_from_every_place(streams, shuffle):
    settings = {"length": 3, "batch_size": 2, "streams": streams, "shuffle": shuffle, "seed": 7}
    resumed_everywhere(
        lambda: blocks_of([4, 0, 7, 3], **settings),
        2,
        plain=lambda batch: (batch.inputs.tolist(), batch.begins),
    )


def test_epochs_are_cut_otherwise_only_when_shuffled():
    settings = {"length": 3, "batch_size": 2, "seed": 7}
    for streams in (True, False):
        plain = blocks_of([9, 9], **settings, streams=streams)
        mixed = blocks_of([9, 9], **settings, streams=streams, shuffle=True)
        epochs = [[b.targets.tolist() for b in blocks] for blocks in (plain, plain, mixed, mixed)]
        assert epochs[0] == epochs[1]
        assert epochs[2] != epochs[3]
        assert epochs[2] == [
            b.targets.tolist() for b in blocks_of([9, 9], **settings, streams=streams, shuffle=True)
        ]


@given(lengths.filter(any), sizes, sizes, st.booleans())
def test_a_batch_says_which_tokens_are_of_one_row(rows, length, batch_size, shuffle):
    ids = iter(range(10_000))
    text = Ragged.from_lists([[next(ids) for _ in range(n)] for n in rows])
    settings = {"length": length, "batch_size": batch_size, "shuffle": shuffle, "seed": 3}
    blocking = Blocking(**settings, says_parts=True)
    for batch in TextBlocks(text, [{}] * len(rows), blocking, before=0):
        for targets, parts in zip(batch.targets.tolist(), batch.parts.tolist(), strict=True):
            wanted = [0]
            for before, token in itertools.pairwise(targets):
                is_next = token == before + 1 and token not in text.offsets
                wanted.append(wanted[-1] + (not is_next))
            assert parts == wanted
    assert next(iter(TextBlocks(text, [{}], Blocking(**settings), before=0))).parts is None
