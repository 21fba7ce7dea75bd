"""Dropout by our own masks keeps what it should, how often it should, and can be repeated."""

import pytest
import torch

from textmill.models import fast
from textmill.models.fast import Fast
from textmill.models.layers.dropout import Dropout, dropout, keep_mask


@pytest.mark.parametrize("p", [0.05, 0.1, 0.5, 0.9])
def test_the_share_of_zeros_is_p_and_the_mean_stays(p):
    torch.manual_seed(0)
    count = 400_000
    mask = keep_mask(torch.empty(count), p)
    four_sigma = 4 * (p * (1 - p) / count) ** 0.5
    assert abs((mask == 0).double().mean().item() - p) < four_sigma + 2**-17
    assert abs(mask.double().mean().item() - 1) < four_sigma / (1 - p) + 1e-6
    assert len(mask.unique()) == 2


def test_each_of_the_four_features_of_a_draw_is_dropped_as_often():
    torch.manual_seed(0)
    dropped = (keep_mask(torch.empty(100_000, 4), 0.3) == 0).double()
    assert (dropped.mean(0) - 0.3).abs().max() < 4 * (0.21 / 100_000) ** 0.5
    covariance = torch.cov(dropped.T).fill_diagonal_(0)
    assert covariance.abs().max() < 5 * 0.21 / 100_000**0.5


@pytest.fixture(params=[True, False])
def _own_or_torchs_masks(request):
    with fast.using(Fast(dropout_masks=request.param)):
        yield


@pytest.mark.usefixtures("_own_or_torchs_masks")
def test_what_is_kept_is_scaled_and_passes_its_gradient():
    layer, x = Dropout(0.25), torch.randn(50, 8, requires_grad=True)
    y = layer(x)
    y.sum().backward()
    kept = y != 0
    assert 0 < int(kept.sum()) < y.numel()
    torch.testing.assert_close(y[kept], x[kept] / 0.75, rtol=1e-4, atol=1e-6)
    assert x.grad is not None
    torch.testing.assert_close(x.grad, kept / 0.75, rtol=1e-4, atol=1e-6)


@pytest.mark.usefixtures("_own_or_torchs_masks")
def test_adding_to_a_residual_is_dropping_and_then_adding():
    layer = Dropout(0.5)
    residual = torch.randn(6, 8, requires_grad=True)
    x = torch.randn(6, 8, requires_grad=True)
    torch.manual_seed(3)
    wanted = residual + dropout(x, 0.5)
    torch.manual_seed(3)
    found = layer.add_to(residual, x)
    torch.testing.assert_close(found, wanted)
    above = torch.randn(6, 8)
    grads = [torch.autograd.grad(y, (residual, x), above) for y in (found, wanted)]
    for ours, theirs in zip(*grads, strict=True):
        torch.testing.assert_close(ours, theirs)


def test_evaluation_and_probability_zero_change_nothing():
    x = torch.randn(4, 4)
    assert Dropout(0.5).eval()(x) is x
    assert Dropout(0.0)(x) is x
    assert torch.equal(Dropout(0.5).eval().add_to(x, x), x + x)


def test_narrow_types_keep_their_type_and_scale():
    torch.manual_seed(0)
    y = dropout(torch.ones(64, dtype=torch.bfloat16), 0.1)
    assert y.dtype == torch.bfloat16
    assert y.max() == torch.tensor(1 / 0.9).bfloat16()
