"""Every normalization against its formula in float64."""

import math

import pytest
import torch
from torch import nn
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from textmill.errors import UserError
from textmill.models.layers.norms import LayerNorm, RMSNorm
from textmill.recipes import registries

KINDS = {
    "layer_norm": LayerNorm.Config(),
    "layer_norm_eps": LayerNorm.Config(eps=0.5),
    "rms_norm": RMSNorm.Config(),
    "rms_norm_eps": RMSNorm.Config(eps=0.5),
}


@pytest.fixture(params=KINDS)
def case(request):
    norm = KINDS[request.param].build(dim=8)
    for parameter in norm.parameters():
        nn.init.normal_(parameter)
    return norm, KINDS[request.param]


def test_it_is_the_formula(case):
    norm, config = case
    x = torch.randn(2, 3, 8) * 2 + 1
    y = x.double()
    if isinstance(norm, LayerNorm):
        y = y - y.mean(-1, keepdim=True)
    y = y / (y.square().mean(-1, keepdim=True) + config.eps).sqrt() * norm.weight.double()
    if isinstance(norm, LayerNorm):
        y = y + norm.bias.double()
    torch.testing.assert_close(norm(x), y.float(), rtol=1e-5, atol=1e-5)


def test_equal_features_are_finite(case):
    norm, _ = case
    x = torch.zeros(1, 8, requires_grad=True)
    norm(x).sum().backward()
    assert norm(x).isfinite().all()
    assert x.grad.isfinite().all()


def test_it_starts_as_the_bare_normalization():
    for config in KINDS.values():
        norm = config.build(dim=8)
        assert torch.equal(norm.weight, torch.ones(8))
        assert getattr(norm, "bias", None) is None or not norm.bias.any()


def test_every_registered_kind_is_in_this_suite():
    tested = {registries.norms.name_of(config.owner) for config in KINDS.values()}
    assert tested == set(registries.norms.names())


def test_rms_norm_is_llama_s():
    theirs, ours = LlamaRMSNorm(8, eps=1e-6), RMSNorm.Config().build(dim=8)
    nn.init.normal_(theirs.weight)
    ours.load_state_dict(theirs.state_dict())
    x = torch.randn(2, 3, 8)
    torch.testing.assert_close(ours(x), theirs(x))


@pytest.mark.parametrize("eps", [0.0, -1e-6, math.inf, math.nan])
def test_an_eps_that_keeps_nothing_from_zero_is_refused(eps):
    with pytest.raises(UserError) as error:
        RMSNorm.Config(eps=eps)
    assert str(error.value) == f"eps must be over 0 and finite, but is {eps}."
