"""Every feed-forward block against its formula in float64."""

import math

import pytest
import torch
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP

from textmill.models.layers.layer import Gated, Mlp

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


def test_every_position_is_for_itself(case):
    block, _ = case
    x = torch.randn(2, 5, 8)
    torch.testing.assert_close(block(x)[1, 3], block(x[1, 3]), rtol=1e-4, atol=1e-4)


def test_every_parameter_learns(case):
    block, _ = case
    block(torch.randn(2, 3, 8)).square().sum().backward()
    for name, parameter in block.named_parameters():
        assert parameter.grad.any(), name


@pytest.mark.parametrize("kind", [Mlp, Gated])
def test_weights_start_at_xavier_s_scale(kind):
    for linear in kind(100, 400, "relu").children():
        assert linear.weight.abs().max().item() == pytest.approx((6 / 500) ** 0.5, rel=0.01)
        assert not linear.bias.any()


def test_the_gated_block_is_llama_s():
    theirs = LlamaMLP(LlamaConfig(hidden_size=8, num_attention_heads=2, intermediate_size=12))
    ours = Gated(8, 12, "silu")
    names = {"gate": "gate_proj", "inner": "up_proj", "outer": "down_proj"}
    for our, their in names.items():
        getattr(ours, our).weight = getattr(theirs, their).weight
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-6)
