"""The batch of sequence tasks, against torch's own padding."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.utils.rnn import pad_sequence

from textmill.data.seq2seq_batch import Seq2SeqBatch, collate_seq2seq
from textmill.errors import DataError
from textmill.text.ragged import Ragged

SOURCE = [[5, 6, 3], [7, 3], [8, 9, 10, 3], [3]]
TARGET = [[2, 5, 3], [2, 6, 7, 8, 3], [2, 3], [2, 9, 9, 3]]
COLUMNS = {"source": Ragged.from_lists(SOURCE), "target": Ragged.from_lists(TARGET)}


def test_collate_is_pad_sequence():
    rows = [2, 0, 3]
    batch = collate_seq2seq(COLUMNS, rows, pad_idx=0)
    for made, lists in ((batch.source, SOURCE), (batch.target, TARGET)):
        oracle = pad_sequence([torch.tensor(lists[i]) for i in rows], batch_first=True)
        assert torch.equal(made, oracle)
    assert batch.source_lengths.tolist() == [4, 3, 1]
    assert batch.target_lengths.tolist() == [1, 2, 3]
    assert batch.rows.tolist() == rows
    assert len(batch) == 3
    assert batch.num_tokens == 8 + 6
    assert batch.num_labels == 6
    assert batch.padding == pytest.approx(1 - 14 / (3 * 4 + 3 * 3))
    assert batch.target_input.tolist() == [[2, 3, 0], [2, 5, 3], [2, 9, 9]]
    assert batch.labels.tolist() == [[3, 0, 0], [5, 3, 0], [9, 9, 3]]


def test_from_padded_counts_the_same():
    made = collate_seq2seq(COLUMNS, range(4), pad_idx=0)
    again = Seq2SeqBatch.from_padded(made.source, made.target, pad_idx=0)
    for name in ("source", "source_lengths", "target", "target_lengths"):
        assert torch.equal(getattr(made, name), getattr(again, name))
    assert (made.num_tokens, made.padding) == (again.num_tokens, again.padding)
    assert again.rows is None


def test_without_target():
    batch = collate_seq2seq({"source": COLUMNS["source"]}, [1, 0], pad_idx=0)
    assert (batch.target, batch.target_lengths, batch.num_labels) == (None, None, 0)
    assert batch.num_tokens == 5
    assert batch.padding == pytest.approx(1 / 6)
    message = r"^This batch has no target: it was made for prediction\.$"
    with pytest.raises(DataError, match=message):
        _ = batch.labels


def test_to_moves_tensors_and_keeps_the_rest():
    batch = collate_seq2seq(COLUMNS, [1, 0], pad_idx=0)
    moved = batch.to("meta")
    assert {moved.source.device.type, moved.target_lengths.device.type} == {"meta"}
    assert moved.num_tokens == batch.num_tokens
    assert moved.rows is batch.rows
    assert collate_seq2seq({"source": COLUMNS["source"]}, [0], 0).to("meta").target is None


def test_a_part_has_its_rows_of_everything():
    beside = {"dictionary": torch.arange(4)[:, None]}
    batch = collate_seq2seq(COLUMNS, range(4), pad_idx=0)
    part = replace(batch, weights=torch.arange(4.0), beside=beside).part(1, 2)
    assert (part.weights.tolist(), part.rows.tolist(), part.num_tokens) == ([1, 3], [1, 3], 10)
    assert part.beside["dictionary"].tolist() == [[1], [3]]


def test_no_rows_at_all():
    batch = collate_seq2seq(COLUMNS, np.zeros(0, np.int64), pad_idx=0)
    assert batch.source.shape == (0, 0)
    assert (len(batch), batch.num_tokens, batch.padding) == (0, 0, 0.0)
