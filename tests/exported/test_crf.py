"""A random field without torch beside the one that is trained."""

import numpy as np
import pytest
import torch

from textmill.exported.forward import decode_with_chances
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
    numbers, found = decode_with_chances(
        scores.numpy(), real.numpy(), crf.answering_transitions().detach().numpy()
    )
    there = real.numpy()
    assert (numbers[there] == labels.numpy()[there]).all()
    assert np.abs(found[there] - chances.numpy()[there]).max() < 2e-5
