"""Losses against those of torch."""

import pytest
import torch
from torch.nn import functional as F

from textmill.errors import UserError
from textmill.models.losses import cross_entropy, num_correct


@pytest.mark.parametrize("smoothing", [0.0, 0.1, 0.7])
@pytest.mark.parametrize("ignore_index", [None, 0])
def test_value_and_gradient_are_those_of_torch(smoothing, ignore_index):
    logits = (torch.randn(31, 17) * 3).requires_grad_()
    targets = torch.randint(0, 17, (31,))
    targets[:5] = 0
    ignored = -100 if ignore_index is None else ignore_index
    wanted = F.cross_entropy(
        logits, targets, reduction="sum", label_smoothing=smoothing, ignore_index=ignored
    )
    found = cross_entropy(logits, targets, label_smoothing=smoothing, ignore_index=ignore_index)
    torch.testing.assert_close(found.total, wanted)
    (theirs,) = torch.autograd.grad(wanted, logits)
    (ours,) = torch.autograd.grad(found.total, logits)
    torch.testing.assert_close(ours, theirs)
    nll = F.cross_entropy(logits, targets, reduction="sum", ignore_index=ignored)
    torch.testing.assert_close(found.nll, nll.detach())
    assert not found.nll.requires_grad
    assert found.count == (targets != ignored).sum()


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
    with pytest.raises(UserError) as error:
        cross_entropy(torch.zeros(2, 3, 5), torch.zeros(2, 3, dtype=torch.int64))
    assert str(error.value) == (
        "cross_entropy wants logits of shape (N, V) and targets of shape (N), but they are "
        "(2, 3, 5) and (2, 3). Flatten batch and time first."
    )


def test_num_correct_counts_the_highest_scores():
    logits = torch.tensor([[0.0, 1.0], [2.0, 1.0], [0.0, 3.0]], requires_grad=True)
    assert num_correct(logits, torch.tensor([1, 1, 1])).item() == 2
