"""Position encodings."""

import math

import pytest
import torch
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaRotaryEmbedding, apply_rotary_pos_emb

from textmill.errors import UserError
from textmill.models.layers.positions import (
    LearnedPositions,
    RotaryPositions,
    SinusoidalPositions,
    sinusoids,
)


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


def test_learned_positions_are_trained():
    positions = KINDS["learned"]()
    assert positions.state_dict()["table"].shape == (7, 8)
    assert positions.rows(0, 1).requires_grad


def test_rotary_positions_are_those_of_llama():
    config = LlamaConfig(hidden_size=32, num_attention_heads=4, rope_theta=500.0)
    theirs = LlamaRotaryEmbedding(config)
    ours = RotaryPositions(8, max_length=300, base=500.0)
    q, k = torch.randn(2, 3, 4, 20, 8)
    cos, sin = theirs(q, torch.arange(280, 300)[None])
    wanted = apply_rotary_pos_emb(q, k, cos, sin)
    for found, want in zip((ours.turned(q, 280), ours.turned(k, 280)), wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-4)  # their angles: float32


def test_turned_products_know_distances_only():
    rotary = RotaryPositions(8, max_length=1000)
    q, k = torch.randn(2, 1, 1, 1, 8)
    near = [(rotary.turned(q, p + 3) * rotary.turned(k, p)).sum().item() for p in (0, 7, 990)]
    assert near == pytest.approx([near[0]] * 3, abs=1e-4)
    assert rotary.turned(q, 5).norm().item() == pytest.approx(q.norm().item(), rel=1e-5)
    assert rotary.turned(q.bfloat16(), 5).dtype == torch.bfloat16
