"""Products are narrow, everything that is kept is not, and a run is as reproducible."""

from contextlib import nullcontext

import pytest
import torch

from textmill.errors import UserError
from textmill.models.layers.linear import ROWS, LinearLayer
from textmill.models.layers.precision import TYPES, autocast
from textmill.models.losses import cross_entropy, projected_cross_entropy
from textmill.tasks import Translation
from textmill.tasks.task import Loss
from textmill.training.precision import Arithmetic, settled


class Sees(Translation):
    """Notes the type of the encoder's products and of the loss."""

    def training_step(self, batch, examples=()):
        seen = self.__dict__.setdefault("seen", {"product": set(), "loss": set()})
        linear = next(m for m in self.module.modules() if isinstance(m, torch.nn.Linear))
        hook = linear.register_forward_hook(lambda m, given, y: seen["product"].add(y.dtype))
        loss = super().training_step(batch, examples)
        hook.remove()
        seen["loss"].add(loss.total.dtype)
        return loss


@pytest.mark.parametrize("precision", ["fp32", "bf16", "fp16"])
def test_only_the_products_are_narrow(bench, precision):
    trainer = bench.but(task_class=Sees).make(precision=precision, max_steps=3)
    trainer.fit()
    wide = {torch.float32}
    assert trainer.task.seen == {"product": {TYPES.get(precision, torch.float32)}, "loss": wide}
    kept = [*trainer.task.module.state_dict().values()]
    kept += [v for s in trainer.optimizer.state_dict()["state"].values() for v in s.values()]
    assert {v.dtype for v in kept if isinstance(v, torch.Tensor) and v.is_floating_point()} == wide


def test_a_device_without_such_products_is_refused(monkeypatch):
    with pytest.raises(UserError, match=r"^The precision is fp16, .* not compute with on meta: "):
        autocast("fp16", "meta")
    # What torch does about a type that a device of a known kind has not: it warns, and ignores it.
    monkeypatch.setitem(TYPES, "fp16", torch.float64)
    with pytest.raises(UserError, match="does not compute with on cpu"):
        autocast("fp16", "cpu")


def test_each_pass_in_bf16_computes_with_the_weights_that_the_last_step_left():
    """The optimizers that torch calls fused do not count the versions of what they move."""
    torch.manual_seed(1)
    layer, x = LinearLayer(8, 4), torch.randn(2 * ROWS, 8)
    optimizer = torch.optim.AdamW(layer.parameters(), lr=0.5, fused=True)
    arithmetic = Arithmetic("bf16", "cpu")

    def compute():
        return Loss(layer(x).float().square().sum(), torch.tensor(1))

    for _ in range(3):
        with torch.no_grad():
            wanted = compute().total
        arithmetic.begin()
        found = arithmetic.differentiate(compute, nullcontext()).total
        torch.testing.assert_close(found.detach(), wanted, rtol=0.01, atol=0)
        optimizer.step()
        optimizer.zero_grad()


@pytest.mark.parametrize("projected", [False, True])
@pytest.mark.parametrize("given", [torch.float32, torch.bfloat16, torch.float64])
def test_the_loss_is_summed_in_float32(projected, given):
    torch.manual_seed(1)
    kind = torch.promote_types(given, torch.float32)
    hidden = torch.randn(600, 16, dtype=given, requires_grad=True)
    weight = (torch.randn(900, 16, dtype=kind) / 4).requires_grad_()
    bias = torch.randn(900, dtype=kind, requires_grad=True)
    targets = torch.randint(900, (600,))

    def total_of(hidden):
        if projected:
            loss = projected_cross_entropy(hidden, weight, bias, targets, label_smoothing=0.1)
        else:
            logits = torch.nn.functional.linear(hidden, weight, bias)
            loss = cross_entropy(logits, targets, label_smoothing=0.1)
        return loss.total

    total = total_of(hidden.to(kind))
    wanted = torch.autograd.grad(total, (hidden, weight, bias))
    with torch.autocast("cpu", torch.bfloat16):
        found = total_of(hidden)
    assert found.dtype == kind
    torch.testing.assert_close(found, total, rtol=1e-3, atol=0)
    most = 1e-9 if kind == torch.float64 else 0.02
    narrow = torch.autograd.grad(found, (hidden, weight, bias))
    for ours, theirs, of in zip(narrow, wanted, (hidden, weight, bias), strict=True):
        assert ours.dtype == of.dtype
        assert (ours - theirs).norm() < most * theirs.norm()


@pytest.mark.parametrize(
    ("capability", "found"), [((7, 5), "fp32"), ((8, 0), "bf16"), ((9, 0), "bf16")]
)
def test_auto_is_what_the_device_has(monkeypatch, capability, found):
    monkeypatch.setattr(torch.cuda, "get_device_capability", lambda device: capability)
    assert settled("auto", "cuda:1") == found
    assert settled("auto", "cpu") == settled("auto", "mps") == "fp32"
    assert settled("fp32", "cuda:1") == "fp32"
    assert settled("auto", "cuda:1", recorded="fp32") == "fp32"
