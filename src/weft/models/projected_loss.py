"""The cross-entropy of hidden states over a vocabulary, without ever holding all its scores.

The scores of 1,000 labels over 5,000 tokens are 20 MB, and their gradient as much: several times
all else that a small model keeps. Taken a few hundred labels at a time they stay in the cache.
"""

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from typing_extensions import override

from weft.models.layers.linear import linear
from weft.models.losses import CrossEntropy

__all__ = ["projected_cross_entropy"]

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
    r"""Cross entropy of :math:`h W^\top + b`, as :func:`weft.models.losses.cross_entropy` has it.

    The gradient is made together with the value, part by part (as Liger Kernel does, Hsu
    et al. 2024), and only multiplied by what comes from above in the backward pass.

    Args:
        hidden: States of the labels. *Shape:* :math:`(N,D)`.
        weight: The projection. *Shape:* :math:`(V,D)`.
        bias: Its bias. *Shape:* :math:`(V)`.
        targets: Class ids. *Shape:* :math:`(N)`.
        label_smoothing: Share of the probability spread over all classes.

    Example:
        >>> import torch
        >>> loss = projected_cross_entropy(
        ...     torch.zeros(3, 2), torch.ones(4, 2), None, torch.tensor([0, 1, 2])
        ... )
        >>> round(loss.total.item() / loss.count.item(), 4)  # log(4)
        1.3863
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

    def add(self, part: slice, grad: Tensor, *, hidden: Tensor, weight: Tensor) -> None:
        """Adds those of a part's scores."""
        if self.hidden is not None:
            self.hidden[part] = linear(grad, weight.t())
        if self.weight is not None and grad.dtype == torch.float32:
            self.weight.addmm_(grad.t(), hidden)
        elif self.weight is not None:
            self.weight += linear(grad.t(), hidden.t())
        if self.bias is not None:
            self.bias += grad.sum(0)


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
        wide = torch.promote_types(hidden.dtype, torch.float32)
        wanted = [
            None if x is None or not need else torch.zeros_like(x, dtype=wide)
            for x, need in zip((hidden, weight, bias), ctx.needs_input_grad, strict=False)
        ]
        gradients = _Gradients(*wanted)
        total, nll = torch.zeros((2,), device=hidden.device, dtype=wide).unbind()
        size = max(LEAST_LABELS, SCORES // len(weight))
        for start in range(0, len(targets), size):
            part = slice(start, start + size)
            log_probs = F.log_softmax(linear(hidden[part], weight, bias).to(wide), dim=-1)
            labels = targets[part, None]
            part_nll = -log_probs.gather(1, labels).sum()
            nll = nll + part_nll
            if label_smoothing:
                uniform = -log_probs.sum() / len(weight)
                part_nll = (1 - label_smoothing) * part_nll + label_smoothing * uniform
            total = total + part_nll
            if any(ctx.needs_input_grad):
                grad = _of_scores(log_probs, labels, label_smoothing).to(hidden.dtype)
                gradients.add(part, grad, hidden=hidden[part], weight=weight)
        ctx.save_for_backward(gradients.hidden, gradients.weight, gradients.bias)
        ctx.mark_non_differentiable(nll)
        return total, nll

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, grad_total: Tensor, _: Tensor) -> tuple[Tensor | None, ...]:
        found = (None if g is None else g * grad_total for g in ctx.saved_tensors)
        return (*found, None, None)


def _of_scores(log_probs: Tensor, labels: Tensor, label_smoothing: float) -> Tensor:
    """The gradient of the scores: softmax less the target distribution; overwrites its input."""
    grad = log_probs.exp_()
    if label_smoothing:
        grad -= label_smoothing / grad.shape[-1]
    return grad.scatter_add_(1, labels, grad.new_full(labels.shape, label_smoothing - 1))
