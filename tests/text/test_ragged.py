"""Ragged arrays against plain Python lists."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from textmill.text.ragged import Ragged

lists = st.lists(st.lists(st.integers(0, 2**31 - 1), max_size=9), max_size=12)
ids = st.lists(st.integers(0, 99), max_size=3)


def as_lists(rows: Ragged):
    return [row.tolist() for row in rows]


@given(lists)
def test_lists_come_back(rows):
    packed = Ragged.from_lists(rows)
    assert as_lists(packed) == rows
    assert len(packed) == len(rows)
    assert packed.lengths.tolist() == [len(row) for row in rows]
    assert (packed.values.dtype, packed.offsets.dtype) == (np.int32, np.int64)
    assert packed == Ragged.from_lists(rows)


@given(lists, st.data())
def test_take_and_padded_are_those_of_lists(rows, data):
    chosen = data.draw(st.lists(st.integers(0, len(rows) - 1)) if rows else st.just([]))
    packed = Ragged.from_lists(rows)
    assert as_lists(packed.take(chosen)) == [rows[i] for i in chosen]
    width = max((len(rows[i]) for i in chosen), default=0)
    padded = packed.padded(chosen, pad=-7)
    assert padded.shape == (len(chosen), width)
    assert padded.dtype == np.int64
    assert padded.tolist() == [rows[i] + [-7] * (width - len(rows[i])) for i in chosen]


@given(lists, ids, ids)
def test_wrapped_is_that_of_lists(rows, before, after):
    wrapped = Ragged.from_lists(rows).wrapped(before, after)
    assert as_lists(wrapped) == [[*before, *row, *after] for row in rows]


@given(lists, st.integers(1, 6))
def test_clipped_keeps_the_last_id(rows, longest):
    clipped = Ragged.from_lists(rows).clipped(longest)
    assert as_lists(clipped) == [
        row if len(row) <= longest else [*row[: longest - 1], row[-1]] for row in rows
    ]


@given(st.lists(lists, max_size=4))
def test_concatenate_is_that_of_lists(parts):
    joined = Ragged.concatenate(Ragged.from_lists(part) for part in parts)
    assert as_lists(joined) == [row for part in parts for row in part]


def test_offsets_that_do_not_fit_are_refused():
    message = r"^Ragged: offsets must rise from 0 to 2, but are array\(\[0, 3\]\)\.$"
    with pytest.raises(ValueError, match=message):
        Ragged(np.zeros(2, np.int32), np.array([0, 3]))


def test_values_may_be_a_mapped_file_of_small_ids(tmp_path):
    rows = [[7, 60_000], [], [1, 2, 3]]
    np.save(tmp_path / "values.npy", np.array([i for row in rows for i in row], np.uint16))
    mapped = np.load(tmp_path / "values.npy", mmap_mode="r")
    ragged = Ragged(np.asarray(mapped), Ragged.from_lists(rows).offsets)
    assert ragged.padded([0, 2, -3], pad=9).tolist() == [[7, 60_000, 9], [1, 2, 3], [7, 60_000, 9]]
    assert [part.tolist() for part in ragged.bounds([-1, 1])] == [[2, 2], [3, 0]]
    with pytest.raises(IndexError):
        ragged.padded([3], pad=0)
    with pytest.raises(IndexError):
        ragged.take([-4])
