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
from textmill.recipes import registries


@pytest.mark.parametrize(("variant", "last"), [("vaswani", 4), ("tensor2tensor", 3)])
def test_sinusoids_are_the_formula(variant, last):
    table = sinusoids(1100, 8, variant=variant)
    for position in (0, 1, 17, 1099):
        for i in range(4):
            angle = position * 10000 ** -(i / last)
            assert table[position, i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 4 + i].item() == pytest.approx(math.cos(angle), abs=1e-6)


SIZES = {"dim": 8, "head_dim": 4, "max_length": 5}
KINDS = {
    "sinusoidal": SinusoidalPositions.Config(offset=2),
    "tensor2tensor": SinusoidalPositions.Config(variant="tensor2tensor"),
    "learned": LearnedPositions.Config(offset=2),
    "rotary": RotaryPositions.Config(),
}


@pytest.mark.parametrize("name", KINDS)
def test_what_every_kind_does(name):
    positions = KINDS[name].build(**SIZES)
    rows = positions.rows(0, 5)
    if rows is not None:
        assert rows.shape == (5, 8)
        assert torch.equal(positions.rows(3, 4), rows[3:4])
        assert len({tuple(row) for row in rows.tolist()}) == 5
    with pytest.raises(UserError) as error:
        positions.rows(3, 6)
    assert str(error.value) == (
        "A sequence of 6 tokens is longer than the model's max_length of 5. "
        "Shorten it, or build the model with a larger max_length."
    )
    assert list(positions.state_dict()) == (["table"] if name == "learned" else [])
    with torch.device("meta"):
        assert all(t.is_meta for t in KINDS[name].build(**SIZES).buffers())


def test_every_registered_kind_is_in_this_suite():
    tested = {registries.positions.name_of(config.owner) for config in KINDS.values()}
    assert tested == set(registries.positions.names())


def test_rows_start_at_the_offset():
    positions = KINDS["sinusoidal"].build(**SIZES)
    table = sinusoids(7, 8, variant="vaswani")
    assert torch.equal(positions.rows(0, 5), table[2:])
    assert torch.equal(positions.rows(3, 4), table[5:6])


def test_learned_positions_are_trained():
    positions = KINDS["learned"].build(**SIZES)
    assert positions.state_dict()["table"].shape == (7, 8)
    assert positions.rows(0, 1).requires_grad


def test_rotary_positions_are_those_of_llama():
    config = LlamaConfig(hidden_size=32, num_attention_heads=4, rope_theta=500.0)
    theirs = LlamaRotaryEmbedding(config)
    ours = RotaryPositions.Config(base=500.0).build(dim=32, head_dim=8, max_length=300)
    q, k = torch.randn(2, 3, 4, 20, 8)
    cos, sin = theirs(q, torch.arange(280, 300)[None])
    wanted = apply_rotary_pos_emb(q, k, cos, sin)
    for found, want in zip((ours.turned(q, 280), ours.turned(k, 280)), wanted, strict=True):
        torch.testing.assert_close(found, want, rtol=1e-4, atol=1e-4)  # their angles: float32


def test_turned_products_know_distances_only():
    rotary = RotaryPositions.Config().build(dim=8, head_dim=8, max_length=1000)
    q, k = torch.randn(2, 1, 1, 1, 8)
    near = [(rotary.turned(q, p + 3) * rotary.turned(k, p)).sum().item() for p in (0, 7, 990)]
    assert near == pytest.approx([near[0]] * 3, abs=1e-4)
    assert rotary.turned(q, 5).norm().item() == pytest.approx(q.norm().item(), rel=1e-5)
    assert rotary.turned(q.bfloat16(), 5).dtype == torch.bfloat16


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: LearnedPositions.Config(offset=-1), "offset must be at least 0, but is -1."),
        (lambda: RotaryPositions.Config(base=1.0), "base must be over 1 and finite, but is 1.0."),
        (
            lambda: RotaryPositions.Config(base=math.nan),
            "base must be over 1 and finite, but is nan.",
        ),
        (
            lambda: RotaryPositions.Config().build(dim=15, head_dim=5, max_length=9),
            "Rotary positions turn pairs of features: a head must have an even number, but has 5 "
            "(model.dim 15 over 3 heads).",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(build, message):
    with pytest.raises(UserError) as error:
        build()
    assert str(error.value) == message
