"""The loss made a few labels at a time is that of all scores at once, with its gradients."""

import pytest
import torch
from torch.nn import functional as F

from textmill.models import losses
from textmill.models.losses import CrossEntropy, cross_entropy, projected_cross_entropy


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("has_bias", [True, False])
@pytest.mark.parametrize("labels", [1, 8, 29])
def test_value_and_gradients(
    smoothing: float, has_bias: bool, labels: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(losses, "LEAST_LABELS", 1)
    monkeypatch.setattr(losses, "SCORES", 8 * 11)  # eight labels at a time
    torch.manual_seed(0)
    targets = torch.randint(11, (labels,))
    tensors = [torch.randn(labels, 6), torch.randn(11, 6)] + [torch.randn(11)] * has_bias
    results: list[tuple[CrossEntropy, list[torch.Tensor | None]]] = []
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
        assert found is not None
        assert wanted is not None
        torch.testing.assert_close(found, wanted)


def test_a_frozen_projection_gets_no_gradient() -> None:
    hidden, weight = torch.randn(4, 3, requires_grad=True), torch.randn(5, 3)
    projected_cross_entropy(hidden, weight, None, torch.tensor([0, 1, 2, 3])).total.backward()
    assert weight.grad is None
    assert hidden.grad is not None


def test_without_gradients_none_is_made() -> None:
    with torch.no_grad():
        loss = projected_cross_entropy(
            torch.randn(4, 3), torch.randn(5, 3), None, torch.tensor([0, 1, 2, 3])
        )
    assert not loss.total.requires_grad


def test_no_label_at_all_is_a_loss_of_zero() -> None:
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
