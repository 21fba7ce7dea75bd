"""Losses against those of torch."""

import pytest
import torch
from torch.nn import functional as F

from textmill.errors import UserError
from textmill.models import losses
from textmill.models.losses import cross_entropy, projected_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
def test_value_and_gradient_are_those_of_torch(smoothing):
    logits = (torch.randn(31, 17) * 3).requires_grad_()
    targets = torch.randint(0, 17, (31,))
    wanted = F.cross_entropy(logits, targets, reduction="sum", label_smoothing=smoothing)
    found = cross_entropy(logits, targets, label_smoothing=smoothing)
    torch.testing.assert_close(found.total, wanted)
    (theirs,) = torch.autograd.grad(wanted, logits)
    (ours,) = torch.autograd.grad(found.total, logits)
    torch.testing.assert_close(ours, theirs)
    nll = F.cross_entropy(logits, targets, reduction="sum")
    torch.testing.assert_close(found.nll, nll.detach())
    assert not found.nll.requires_grad
    assert found.count == 31


def test_a_scaled_sum_scales_the_gradient():
    logits = torch.randn(5, 7, dtype=torch.float64, requires_grad=True)
    targets = torch.randint(0, 7, (5,))
    assert torch.autograd.gradcheck(
        lambda x: 3 * cross_entropy(x, targets, label_smoothing=0.1).total, logits
    )


def test_no_targets_give_zero():
    loss = cross_entropy(torch.zeros(0, 5), torch.zeros(0, dtype=torch.int64))
    assert (loss.total, loss.nll, loss.count) == (0, 0, 0)


def test_huge_logits_stay_finite():
    loss = cross_entropy(torch.tensor([[1e5, -1e5]]), torch.tensor([1]), label_smoothing=0.1)
    assert loss.total.isfinite()


def test_shapes_must_agree():
    with pytest.raises(UserError, match=r"^cross_entropy .* \(2, 3, 5\) and \(2, 3\)"):
        cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.int64))


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("labels", [1, 8, 29])
def test_value_and_gradients(smoothing, has_bias, labels, monkeypatch):
    monkeypatch.setattr(losses, "LEAST_LABELS", 1)
    monkeypatch.setattr(losses, "SCORES", 8 * 11)  # eight labels at a time
    torch.manual_seed(0)
    targets = torch.randint(11, (labels,))
    tensors = [torch.randn(labels, 6), torch.randn(11, 6)] + [torch.randn(11)] * has_bias
    results = []
    for part in (True, False):
        hidden, weight, *bias = [t.clone().requires_grad_() for t in tensors]
        offset = bias[0] if bias else None
        if part:
            loss = projected_cross_entropy(
                hidden, weight, offset, targets, label_smoothing=smoothing
            )
        else:
            scores = F.linear(hidden, weight, offset)
            loss = cross_entropy(scores, targets, label_smoothing=smoothing)
        (3 * loss.total).backward()
        results.append((loss, [hidden.grad, weight.grad, *(b.grad for b in bias)]))
    (ours, our_grads), (theirs, their_grads) = results
    torch.testing.assert_close(ours.total, theirs.total)
    torch.testing.assert_close(ours.nll, theirs.nll)
    assert ours.count == labels
    for found, wanted in zip(our_grads, their_grads, strict=True):
        torch.testing.assert_close(found, wanted)


def test_a_frozen_projection_gets_no_gradient():
    hidden, weight = torch.randn(4, 3, requires_grad=True), torch.randn(5, 3)
    projected_cross_entropy(hidden, weight, None, torch.tensor([0, 1, 2, 3])).total.backward()
    assert weight.grad is None
    assert hidden.grad is not None


def test_without_gradients_none_is_made():
    with torch.no_grad():
        loss = projected_cross_entropy(
            torch.randn(4, 3), torch.randn(5, 3), None, torch.tensor([0, 1, 2, 3])
        )
    assert not loss.total.requires_grad


def test_no_label_at_all_is_a_loss_of_zero():
    hidden = torch.randn(0, 3, requires_grad=True)
    loss = projected_cross_entropy(
        hidden, torch.randn(5, 3), None, torch.empty(0, dtype=torch.int64)
    )
    loss.total.backward()
    assert loss.total == 0
    assert loss.count == 0


def test_numbers_of_64_bits_stay_so():
    hidden = torch.randn(5, 3, dtype=torch.float64, requires_grad=True)
    weight = torch.randn(7, 3, dtype=torch.float64, requires_grad=True)
    targets = torch.tensor([0, 6, 2, 2, 1])
    assert torch.autograd.gradcheck(
        lambda h, w: projected_cross_entropy(h, w, None, targets, label_smoothing=0.1).total,
        (hidden, weight),
    )
