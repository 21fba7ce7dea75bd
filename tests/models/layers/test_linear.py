"""The affine layer through oneDNN is torch's, forward and backward."""

import pytest
import torch
from torch.nn import functional as F

from textmill.models import fast
from textmill.models.fast import Fast
from textmill.models.layers.linear import LARGE, ROWS, LinearLayer, keeping_copies, linear
from textmill.runtime import machine

needs_bf16 = pytest.mark.skipif(not machine.has_bf16(), reason="oneDNN has no bfloat16 here")


@pytest.fixture(autouse=True)
def onednn(monkeypatch):
    if not torch.backends.mkldnn.is_available():
        pytest.skip("this torch is built without oneDNN")
    monkeypatch.setattr("textmill.models.layers.linear.LARGE", 0)
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


def test_only_large_products_of_many_rows_go_there(monkeypatch):
    monkeypatch.setattr("textmill.models.layers.linear.LARGE", LARGE)
    seen = list[int]()

    def noted(rows, weight, bias=None):
        seen.append(rows.shape[0] * weight.numel())
        return F.linear(rows, weight, bias)

    monkeypatch.setattr("textmill.models.layers.linear.product", noted)
    layer = LinearLayer(128, 512)
    for rows in (1, ROWS - 1, ROWS, 4 * ROWS):
        layer(torch.randn(rows, 128))
    LinearLayer(16, 16)(torch.randn(4 * ROWS, 16))
    assert seen == [LARGE, 4 * LARGE]


def test_a_frozen_weight_gets_no_gradient():
    layer = LinearLayer(8, 4)
    layer.weight.requires_grad_(requires_grad=False)
    x = torch.randn(2 * ROWS, 8, requires_grad=True)
    layer(x).sum().backward()
    assert layer.weight.grad is None
    assert x.grad is not None
    assert layer.bias.grad is not None


@pytest.mark.parametrize("narrow", [False, True])
def test_other_types_are_left_to_torch(narrow):
    layer = LinearLayer(8, 4).double()
    x = torch.randn(2 * ROWS, 8, dtype=torch.float64)
    with torch.autocast("cpu", torch.bfloat16, enabled=narrow):
        assert torch.equal(layer(x), F.linear(x, layer.weight, layer.bias))
    with pytest.raises(RuntimeError, match="same dtype"):
        linear(x.float(), layer.weight.bfloat16(), None)


@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [ROWS, 3 * ROWS + 5, 7])
def test_bf16_is_as_near_as_torchs_own_and_its_gradients_are_of_float32(given, rows):
    torch.manual_seed(0)
    x, above = torch.randn(rows, 24).to(given), torch.randn(rows, 40)
    weight, bias = torch.randn(40, 24), torch.randn(40)

    def computed(apply):
        leaves = [t.clone().requires_grad_() for t in (x, weight, bias)]
        with torch.autocast("cpu", torch.bfloat16):
            y = apply(*leaves)
        assert y.dtype == torch.bfloat16
        y.backward(above.bfloat16())
        return [y.detach(), *(leaf.grad for leaf in leaves)]

    for ours, theirs in zip(computed(linear), computed(F.linear), strict=True):
        assert ours.dtype == theirs.dtype
        assert (ours - theirs).float().norm() < 0.005 * theirs.float().norm()


@needs_bf16
def test_a_parameter_is_copied_once_until_the_copies_are_cleared():
    layer, x, copies = LinearLayer(8, 4), torch.randn(ROWS, 8), {}
    with torch.no_grad(), keeping_copies(copies), torch.autocast("cpu", torch.bfloat16):
        first = layer(x)
        layer.weight.mul_(2)
        layer.bias.mul_(2)
        assert torch.equal(layer(x), first)
        copies.clear()
        assert torch.equal(layer(x), 2 * first)
    assert {*copies} == {layer.weight, layer.bias}


@needs_bf16
def test_a_copy_that_a_search_has_made_is_one_that_a_gradient_can_use():
    layer, x, copies = LinearLayer(8, 4), torch.randn(ROWS, 8), {}
    with keeping_copies(copies), torch.autocast("cpu", torch.bfloat16):
        with torch.inference_mode():
            layer(x)
        assert {*copies} == {layer.weight, layer.bias}
        layer(x).sum().backward()
    assert layer.weight.grad is not None
