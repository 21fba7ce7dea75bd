"""Position encodings."""

import math

import pytest
import torch

from weft.models.layers.positions import LearnedPositions, SinusoidalPositions, sinusoids


@pytest.mark.parametrize(("variant", "last"), [("vaswani", 4), ("tensor2tensor", 3)])
def test_sinusoids_are_the_formula(variant, last):
    table = sinusoids(1100, 8, variant=variant)
    for position in (0, 1, 17, 1099):
        for i in range(4):
            angle = position * 10000 ** -(i / last)
            assert table[position, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 4 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_rows_start_at_the_offset():
    positions = SinusoidalPositions(dim=8, max_length=5, offset=2)
    table = sinusoids(7, 8, variant="vaswani")
    assert torch.equal(positions.rows(0, 5), table[2:])
    assert torch.equal(positions.rows(3, 4), table[5:6])
    assert not positions.state_dict()


def test_learned_positions_are_trained():
    positions = LearnedPositions(dim=8, max_length=5, offset=2)
    assert positions.rows(0, 5).shape == (5, 8)
    assert positions.state_dict()["table"].shape == (7, 8)
    assert positions.rows(0, 1).requires_grad
