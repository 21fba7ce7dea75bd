"""Rows that are asked together share calls by their length, and each gets its own answer."""

from itertools import pairwise
from types import SimpleNamespace

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from textmill.exported.columns import TOKENS, ExportedColumns
from textmill.exported.forward import RowForward
from textmill.text.processors.text_processor import Encoded
from textmill.text.ragged import Ragged, offsets_of

LENGTHS = st.one_of(st.integers(0, 30), st.integers(0, TOKENS + 1))


class Numbers:
    """A text processor whose rows are lists of numbers, and whose answers are the outputs."""

    input_columns, optional_columns = ("text",), ()

    def __init__(self):
        column = SimpleNamespace(width=1, pad=0, single=False, fixed=False, dtype=int)
        column.box = lambda *given: None
        self.all = {"text": column}

    def encode_one(self, row):
        return None

    def encode(self, rows, *, with_targets):
        values = np.array([number for row in rows for number in row], dtype=np.int64)
        offsets = offsets_of(np.array([len(row) for row in rows]))
        return Encoded({"text": Ragged(values, offsets)}, np.zeros(0, np.int64))

    def decode(self, outputs):
        return [float(output) for output in outputs]

    def completed(self, answer, row):
        return answer


class Sums:
    """A graph that sums each row's numbers, and keeps the lengths of each batch."""

    def __init__(self):
        self.batches = []

    def run(self, arrays):
        self.batches.append((arrays["text"].shape, arrays["text.lengths"].tolist()))
        return [arrays["text"].sum(axis=1)]


@given(st.lists(LENGTHS, min_size=1, max_size=80), st.randoms(use_true_random=False))
def test_each_row_gets_its_own_answer_and_batches_have_little_padding(lengths, random):
    rows = [[random.randrange(1, 1 << 40) for _ in range(length)] for length in lengths]
    graph = Sums()
    exported = ExportedColumns(Numbers(), graph, RowForward(), refuses_long=True)
    assert exported.answers(rows) == [float(sum(row)) for row in rows]
    for (count, width), real in graph.batches:
        assert count == 1 or count * width <= TOKENS
        # A row without numbers takes a place, too.
        assert count * width - sum(max(each, 1) for each in real) <= width
    # None ends before it must.
    for (shape, real), (_, others) in pairwise(graph.batches):
        width = max(min(others), 1)
        padding = sum(width - max(each, 1) for each in real)
        assert padding > width or (shape[0] + 1) * width > TOKENS
