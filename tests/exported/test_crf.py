"""A random field without torch beside the one that is trained."""

import numpy as np
import pytest
import torch

from textmill.exported.random_field import RandomField
from textmill.models.crf import LinearChainCrf

NAMES = ["O", "B-x", "I-x", "B-y", "I-y"]


def made(rows, length, *, constrained, scale=2.0):
    random = torch.Generator().manual_seed(rows * 31 + length)
    crf = LinearChainCrf(NAMES, constrained=constrained)
    crf.transitions.data = torch.randn(crf.transitions.shape, generator=random) * scale
    scores = torch.randn(rows, length, len(NAMES), generator=random) * scale
    lengths = torch.randint(1, length + 1, (rows,), generator=random)
    lengths[0] = length
    return crf, scores, torch.arange(length) < lengths[:, None]


@pytest.mark.parametrize("constrained", [False, True])
@pytest.mark.parametrize(("rows", "length"), [(1, 1), (1, 9), (7, 4), (40, 30)])
def test_it_answers_as_the_trained_one(rows, length, constrained):
    crf, scores, real = made(rows, length, constrained=constrained)
    with torch.no_grad():
        labels, chances = crf.decode_with_chances(scores, real)
    field = RandomField(crf.answering_transitions().detach().numpy())
    numbers, found = field.decode_with_chances(scores.numpy(), real.numpy())
    there = real.numpy()
    assert (numbers[there] == labels.numpy()[there]).all()
    assert np.abs(found[there] - chances.numpy()[there]).max() < 2e-5


def test_no_score_makes_an_answer_break_the_scheme():
    crf = LinearChainCrf(NAMES[:3])
    scores = np.array([[[0.0, 0.0, 1e20], [0.0, -1e20, 1e20]]], np.float32)
    field = RandomField(crf.answering_transitions().detach().numpy())
    numbers, chances = field.decode_with_chances(scores, np.ones((1, 2), np.bool_))
    assert (numbers.tolist(), chances.tolist()) == ([[1, 2]], [[1.0, 1.0]])


def test_labels_of_which_no_sequence_can_be_right_still_give_one():
    crf = LinearChainCrf(["B-x", "L-x"])
    field = RandomField(crf.answering_transitions().detach().numpy())
    scores = np.array([[[300.0, -300.0]]], np.float32)
    numbers, chances = field.decode_with_chances(scores, np.ones((1, 1), np.bool_))
    assert numbers.tolist() == crf.decode(torch.from_numpy(scores), torch.ones(1, 1) > 0).tolist()
    assert np.isfinite(chances).all()
