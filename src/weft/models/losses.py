"""Losses: pure functions that return sums with the count they sum over.

A sum and a count can be added over micro-batches and ranks and divided once; a mean cannot.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from typing_extensions import override

from weft.errors import UserError

__all__ = ["CrossEntropy", "cross_entropy", "num_correct"]


@dataclass(frozen=True)
class CrossEntropy:
    """Sums of a cross entropy over its targets; each is a scalar, *Shape:* :math:`()`."""

    total: Tensor
    """Sum of the (label-smoothed) loss, in nats; differentiable."""
    nll: Tensor
    """Sum of the negative log-likelihood without smoothing, in nats; detached. For perplexity."""
    count: Tensor
    """Number of targets summed over, int64."""


def cross_entropy(
    logits: Tensor,
    targets: Tensor,
    *,
    label_smoothing: float = 0.0,
    ignore_index: int | None = None,
) -> CrossEntropy:
    r"""Cross entropy between unnormalized scores and class ids, with label smoothing.

    With smoothing :math:`\epsilon` over :math:`V` classes the target distribution puts
    :math:`1 - \epsilon + \epsilon/V` on the target and :math:`\epsilon/V` on every other class:

    .. math::
        \ell = -(1 - \epsilon) \log p_t - \frac{\epsilon}{V} \sum_{v=1}^{V} \log p_v

    The same as ``torch.nn.functional.cross_entropy(..., reduction="sum")``. Source: Szegedy et al.
    2016, "Rethinking the Inception Architecture for Computer Vision", section 7.

    Args:
        logits: Unnormalized scores. *Shape:* :math:`(N,V)`.
        targets: Class ids, int64. *Shape:* :math:`(N)`.
        label_smoothing: :math:`\epsilon`, from 0 to below 1.
        ignore_index: A target id that is neither summed nor counted; None counts all. It is cheaper
            not to compute the logits of such positions at all.

    Raises:
        UserError: If the sizes of ``logits`` and ``targets`` disagree.

    Example:
        >>> import torch
        >>> loss = cross_entropy(torch.zeros(3, 4), torch.tensor([0, 1, 2]))
        >>> round(loss.total.item() / loss.count.item(), 4)  # log(4)
        1.3863
    """
    if logits.ndim != 2 or targets.shape != logits.shape[:1]:
        raise UserError(
            f"cross_entropy wants logits of shape (N, V) and targets of shape (N), but they are "
            f"{tuple(logits.shape)} and {tuple(targets.shape)}. Flatten batch and time first."
        )
    if ignore_index is not None:
        kept = targets != ignore_index
        logits, targets = logits[kept], targets[kept]
    total, nll = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        logits, targets, label_smoothing
    )
    return CrossEntropy(total, nll, targets.new_tensor(targets.numel()))


def num_correct(logits: Tensor, targets: Tensor) -> Tensor:
    """How many targets have the highest score: the numerator of accuracy.

    Args:
        logits: Scores. *Shape:* :math:`(N,V)`.
        targets: Class ids. *Shape:* :math:`(N)`.

    Returns:
        The count, int64. *Shape:* :math:`()`.

    Example:
        >>> import torch
        >>> num_correct(torch.eye(3), torch.tensor([0, 1, 1])).item()
        2
    """
    return (logits.detach().argmax(dim=-1) == targets).sum()


class _SmoothedCrossEntropy(torch.autograd.Function):
    """Cross entropy whose gradient is written in one pass: softmax less the target distribution.

    Composed of torch's own functions the backward pass writes and adds three tensors of shape
    (N, V); on a CPU, with 5,000 classes, that is a sixth of a training step.
    """

    @staticmethod
    @override
    def forward(
        ctx: Any, logits: Tensor, targets: Tensor, label_smoothing: float
    ) -> tuple[Tensor, Tensor]:
        log_probs = F.log_softmax(logits, dim=-1, dtype=_wide(logits))
        nll = F.nll_loss(log_probs, targets, reduction="sum")
        total = nll
        if label_smoothing:
            uniform = -log_probs.sum() / logits.shape[-1]
            total = (1 - label_smoothing) * nll + label_smoothing * uniform
        ctx.save_for_backward(log_probs, targets)
        ctx.label_smoothing = label_smoothing
        ctx.mark_non_differentiable(nll := nll.clone())
        return total, nll

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        log_probs, targets = ctx.saved_tensors
        grad = log_probs.exp()
        if ctx.label_smoothing:
            grad -= ctx.label_smoothing / grad.shape[-1]
        on_target = grad.new_full((len(targets), 1), ctx.label_smoothing - 1)
        grad.scatter_add_(1, targets[:, None], on_target)
        return grad.mul_(grad_total), None, None


def _wide(x: Tensor) -> torch.dtype:
    """At least float32: under autocast scores come in bfloat16, whose sums are of no use."""
    return torch.promote_types(x.dtype, torch.float32)
