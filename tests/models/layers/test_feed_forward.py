"""Every feed-forward block against its formula in float64."""

import math

import pytest
import torch
from torch import nn
from transformers import LlamaConfig
from transformers.models.llama.modeling_llama import LlamaMLP

from textmill.errors import UserError
from textmill.models.layers.feed_forward import Gated, Mlp
from textmill.recipes import registries

FORMULAS = {
    "relu": lambda x: max(x, 0.0),
    "gelu": lambda x: x * 0.5 * (1 + math.erf(x / math.sqrt(2))),
    "silu": lambda x: x / (1 + math.exp(-x)),
}
KINDS = {
    f"{kind.__name__}-{name}": (kind.Config(ffn_dim=12, activation=name), FORMULAS[name])
    for kind in (Mlp, Gated)
    for name in FORMULAS
}


@pytest.fixture(params=KINDS)
def case(request):
    config, formula = KINDS[request.param]
    block = config.build(dim=8).eval()
    for parameter in block.parameters():
        nn.init.normal_(parameter)
    return block, formula


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


@pytest.mark.parametrize("name", KINDS)
def test_weights_start_at_xavier_s_scale(name):
    config, _ = KINDS[name]
    block = type(config)(ffn_dim=400, activation=config.activation).build(dim=100)
    for linear in block.children():
        assert linear.weight.abs().max().item() == pytest.approx((6 / 500) ** 0.5, rel=0.01)
        assert not linear.bias.any()


def test_every_registered_kind_is_in_this_suite():
    tested = {registries.feed_forwards.name_of(config.owner) for config, _ in KINDS.values()}
    assert tested == set(registries.feed_forwards.names())


def test_the_gated_block_is_llama_s():
    theirs = LlamaMLP(LlamaConfig(hidden_size=8, num_attention_heads=2, intermediate_size=12))
    ours = Gated.Config(ffn_dim=12).build(dim=8)
    names = {"gate": "gate_proj", "inner": "up_proj", "outer": "down_proj"}
    for our, their in names.items():
        getattr(ours, our).weight = getattr(theirs, their).weight
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(ours(x), theirs(x), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Gated.Config(ffn_dim=0), "ffn_dim must be at least 1, but is 0."),
        (
            lambda: Mlp.Config(activation="relu").build(dim=8),
            "Mlp.Config.ffn_dim is None, which takes the ffn_dim of a model, but the block is "
            "built alone. Give ffn_dim.",
        ),
        (
            lambda: Mlp.Config(ffn_dim=8).build(dim=8),
            "Mlp.Config.activation is None, which takes the activation of a model, but the block "
            "is built alone. Give activation.",
        ),
    ],
)
def test_settings_that_cannot_work_are_refused(build, message):
    with pytest.raises(UserError) as error:
        build()
    assert str(error.value) == message
