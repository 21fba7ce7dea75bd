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

from textmill.errors import UserError
from textmill.models.layers.linear import bf16_copy, is_in_bf16, linear, product


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
    weights: Tensor | None = None,
) -> CrossEntropy:
    r"""Cross entropy of unnormalized scores, :math:`(N,V)`, and class ids, :math:`(N)`, int64.

    With smoothing :math:`\epsilon` over :math:`V` classes the target distribution puts
    :math:`1 - \epsilon + \epsilon/V` on the target and :math:`\epsilon/V` on every other class:

    .. math::
        \ell = -(1 - \epsilon) \log p_t - \frac{\epsilon}{V} \sum_{v=1}^{V} \log p_v

    The same as ``torch.nn.functional.cross_entropy(..., reduction="sum")``. Source: Szegedy et al.
    2016, "Rethinking the Inception Architecture for Computer Vision", section 7.

    Each target counts as often as ``weights`` say, :math:`(N)`, in the sums and in the count.
    """
    if logits.ndim != 2 or targets.shape != logits.shape[:1]:
        raise UserError(
            f"cross_entropy wants logits of shape (N, V) and targets of shape (N), but they are "
            f"{tuple(logits.shape)} and {tuple(targets.shape)}. Flatten batch and time first."
        )
    if weights is not None:
        nll, each = (
            F.cross_entropy(logits.to(_wide(logits)), targets, reduction="none", label_smoothing=e)
            for e in (0.0, label_smoothing)
        )
        return CrossEntropy(each @ weights, (nll @ weights).detach(), weights.sum())
    total, nll = _SmoothedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        logits, targets, label_smoothing
    )
    return CrossEntropy(total, nll, targets.new_tensor(targets.numel()))


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
        total = _smoothed(nll, log_probs, label_smoothing)
        ctx.save_for_backward(log_probs, targets)
        ctx.label_smoothing = label_smoothing
        ctx.mark_non_differentiable(nll := nll.clone())
        return total, nll

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor, None, None]:
        log_probs, targets = ctx.saved_tensors
        grad = _of_scores(log_probs.exp(), targets[:, None], ctx.label_smoothing)
        return grad.mul_(grad_total), None, None


def _wide(x: Tensor) -> torch.dtype:
    return torch.promote_types(x.dtype, torch.float32)


def _smoothed(nll: Tensor, log_probs: Tensor, label_smoothing: float) -> Tensor:
    if not label_smoothing:
        return nll
    uniform = -log_probs.sum() / log_probs.shape[-1]
    return (1 - label_smoothing) * nll + label_smoothing * uniform


SCORES = 2**19
"""Scores made at a time: 2 MB of them, a share of the second cache of a core."""
LEAST_LABELS = 128
"""But so many labels at least: of a vocabulary of 32,000, 16 at a time take 2.8 times as long as
all at once, 128 as long."""


def projected_cross_entropy(
    hidden: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    targets: Tensor,
    *,
    label_smoothing: float = 0.0,
) -> CrossEntropy:
    r"""Cross entropy of :math:`h W^\top + b`, as :func:`cross_entropy` has it.

    All its scores are never held (of 1,000 labels over 5,000 tokens 20 MB): taken a few hundred
    labels at a time they stay in the cache. The gradient is made together with the value, part by
    part (as Liger Kernel does, Hsu et al. 2024), and only multiplied in the backward pass. *Shape:*
    :math:`(N,D)`, :math:`(V,D)`, :math:`(V)` and class ids :math:`(N)`.
    """
    total, nll = _ProjectedCrossEntropy.apply(  # type: ignore[no-untyped-call]
        hidden, weight, bias, targets, label_smoothing
    )
    return CrossEntropy(total, nll, targets.new_tensor(targets.numel()))


@dataclass
class _Gradients:
    """Of the sum of the losses, filled part by part; None where nobody asks."""

    hidden: Tensor | None
    weight: Tensor | None
    bias: Tensor | None

    def add(
        self, part: slice, grad: Tensor, *, hidden: Tensor, weight: Tensor, narrow: bool
    ) -> None:
        if self.hidden is not None:
            self.hidden[part] = linear(grad, weight.t())
        if self.weight is not None and grad.dtype == torch.float32:
            self.weight.addmm_(grad.t(), hidden)
        elif self.weight is not None:
            self.weight += (product if narrow else F.linear)(grad.t(), hidden.t())
        if self.bias is not None:
            self.bias += grad.sum(0, dtype=self.bias.dtype)


class _ProjectedCrossEntropy(torch.autograd.Function):
    @staticmethod
    @override
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        targets: Tensor,
        label_smoothing: float,
    ) -> tuple[Tensor, Tensor]:
        wide = _wide(hidden)
        wanted = [
            None if x is None or not need else torch.zeros_like(x, dtype=wide)
            for x, need in zip((hidden, weight, bias), ctx.needs_input_grad, strict=False)
        ]
        gradients = _Gradients(*wanted)
        total, nll = torch.zeros((2,), device=hidden.device, dtype=wide).unbind()
        narrow = is_in_bf16(hidden)
        if narrow:
            hidden, weight = bf16_copy(hidden), bf16_copy(weight)
            bias = None if bias is None else bf16_copy(bias)
        size = max(LEAST_LABELS, SCORES // len(weight))
        for start in range(0, len(targets), size):
            part = slice(start, start + size)
            log_probs = F.log_softmax(linear(hidden[part], weight, bias).to(wide), dim=-1)
            labels = targets[part, None]
            part_nll = -log_probs.gather(1, labels).sum()
            nll = nll + part_nll
            total = total + _smoothed(part_nll, log_probs, label_smoothing)
            if any(ctx.needs_input_grad):
                grad = _of_scores(log_probs.exp_(), labels, label_smoothing).to(hidden.dtype)
                gradients.add(part, grad, hidden=hidden[part], weight=weight, narrow=narrow)
        ctx.save_for_backward(gradients.hidden, gradients.weight, gradients.bias)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        found = (None if g is None else g * grad_total for g in ctx.saved_tensors)
        return (*found, None, None)


def _of_scores(grad: Tensor, labels: Tensor, label_smoothing: float) -> Tensor:
    if label_smoothing:
        grad -= label_smoothing / grad.shape[-1]
    return grad.scatter_add_(1, labels, grad.new_full(labels.shape, label_smoothing - 1))
