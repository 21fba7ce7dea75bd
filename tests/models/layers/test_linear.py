"""The affine layer through oneDNN is torch's, forward and backward."""

import pytest
import torch
from torch.nn import functional as F

from textmill.models import fast
from textmill.models.fast import Fast
from textmill.models.layers.linear import ROWS, LinearLayer, linear


@pytest.fixture(autouse=True)
def onednn():
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch is built without oneDNN")
    with fast.using(Fast(linear="onednn")):
        yield


@pytest.mark.parametrize("shape", [(ROWS, 24), (3, ROWS, 24), (ROWS + 1, 24), (5, 37, 24), (7, 24)])
@pytest.mark.parametrize("has_bias", [True, False])
def test_values_and_gradients_are_those_of_torch(shape, has_bias):
    torch.manual_seed(0)
    x, weight = torch.randn(shape), torch.randn(40, 24)
    tensors = [x, weight, *([torch.randn(40)] if has_bias else [])]
    above = torch.randn(*shape[:-1], 40)
    found, wanted = [], []
    for apply, results in ((linear, found), (F.linear, wanted)):
        leaves = [t.clone().requires_grad_() for t in tensors]
        y = apply(*leaves)
        y.backward(above)
        results += [y.detach(), *(t.grad for t in leaves)]
    for ours, theirs in zip(found, wanted, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-4)


def test_a_frozen_weight_gets_no_gradient():
    layer = LinearLayer(8, 4)
    layer.weight.requires_grad_(requires_grad=False)
    x = torch.randn(2 * ROWS, 8, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert x.grad is not None
    assert layer.bias.grad is not None


def test_other_types_and_small_products_are_left_to_torch():
    layer = LinearLayer(8, 4).double()
    x = torch.randn(2 * ROWS, 8, dtype=torch.float64)
    assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))


def test_autocast_is_obeyed():
    with torch.autocast("cpu", torch.bfloat16):
        assert LinearLayer(8, 4)(torch.randn(2 * ROWS, 8)).dtype == torch.bfloat16


def test_auto_asks_the_processor_only(monkeypatch):
    with fast.using(Fast()):
        monkeypatch.setattr(fast, "has_fast_onednn", lambda: True)
        assert fast.linear_library() == "onednn"
        monkeypatch.setattr(fast, "has_fast_onednn", lambda: False)
        assert fast.linear_library() == "torch"
