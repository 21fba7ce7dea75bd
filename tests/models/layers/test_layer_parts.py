"""Every feed-forward block against its formula in float64."""

import math

import pytest
import torch
from torch import nn

from textmill.errors import UserError
from textmill.models.layers.layer import Gated, Mlp
from textmill.models.layers.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoids,
)

FORMULAS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + math.exp(-x)),
}


@pytest.fixture(params=FORMULAS)
def activation(request):
    return request.param


@pytest.fixture(params=[Mlp, Gated])
def case(request, activation):
    block = request.param(8, 12, activation).eval()
    for parameter in block.parameters():
        nn.init.normal_(parameter)
    return block, FORMULAS[activation]


def brute_force(block, x, formula):
    def affine(linear, x):
        return linear.weight.double() @ x + linear.bias.double()

    def one(x):
        activated = affine(getattr(block, "gate", block.inner), x).tolist()
        hidden = torch.tensor([formula(value) for value in activated], dtype=torch.float64)
        if hasattr(block, "gate"):
            hidden = hidden * affine(block.inner, x)
        return affine(block.outer, hidden)

    rows = [one(row) for row in x.double().flatten(0, -2)]
    return torch.stack(rows).view(x.shape).float()


def test_it_is_the_formula(case):
    block, formula = case
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(block(x), brute_force(block, x, formula), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("kind", [Mlp, Gated])
def test_weights_start_at_xavier_s_scale(kind):
    for linear in kind(100, 400, "relu").children():
        assert linear.weight.abs().max().item() == pytest.approx((6 / 500) ** 0.5, rel=0.01)
        assert not linear.bias.any()


@pytest.mark.parametrize(("variant", "last"), [("vaswani", 4), ("tensor2tensor", 3)])
def test_sinusoids_are_the_formula(variant, last):
    table = sinusoids(1100, 8, variant=variant)
    for position in (0, 1, 17, 1099):
        for i in range(4):
            angle = position * 10000 ** -(i / last)
            assert table[position, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 4 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


KINDS = {
    "sinusoidal": lambda: SinusoidalPositions(8, max_length=5, offset=2),
    "learned": lambda: LearnedPositions(8, max_length=5, offset=2),
    "rotary": lambda: RotaryPositions(4, max_length=5),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_every_kind_does(name):
    positions = KINDS[name]()
    rows = positions.rows(0, 5)
    if rows is not None:
        assert rows.shape == (5, 8)
        assert torch.equal(positions.rows(3, 4), rows[3:4])
        assert len({tuple(row) for row in rows.tolist()}) == 5
    with pytest.raises(UserError, match="6 tokens is longer than the model's max_length of 5"):
        positions.rows(3, 6)
    assert list(positions.state_dict()) == (["table"] if name == "learned" else [])
    with torch.device("meta"):
        assert all(t.is_meta for t in KINDS[name]().buffers())


def test_rows_start_at_the_offset():
    positions = KINDS["sinusoidal"]()
    table = sinusoids(7, 8, variant="vaswani")
    assert torch.equal(positions.rows(0, 5), table[2:])
    assert torch.equal(positions.rows(3, 4), table[5:6])


def test_turned_numbers_keep_their_type():
    x = torch.randn(2, 4, 3, 4, dtype=torch.bfloat16)
    assert RotaryPositions(4, max_length=5).turned(x, 1).dtype == torch.bfloat16
