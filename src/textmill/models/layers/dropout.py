"""Dropout (Srivastava et al. 2014), alone and together with the residual it is added to."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from typing_extensions import override

from textmill.models import fast

STEPS = 2**16
"""A feature is kept by 16 random bits: its probability is right to half of ``1 / STEPS``."""


class Dropout(nn.Dropout):
    """A ``torch.nn.Dropout`` with cheaper masks on CPUs: :class:`textmill.models.fast.Fast`."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        return dropout(x, self.p) if self.training and self.p else x

    def add_to(self, residual: Tensor, x: Tensor) -> Tensor:
        """``residual`` plus what is left of ``x``, in one pass. *Shape:* :math:`(*)`."""
        if not (self.training and self.p):
            return residual + x
        if not has_cheap_masks(x, self.p):
            return residual + F.dropout(x, self.p)
        y: Tensor = _AddDropped.apply(residual, x, keep_mask(x, self.p))  # type: ignore[no-untyped-call]
        return y


def dropout(x: Tensor, p: float) -> Tensor:
    """Drops each element with probability ``p`` and divides the others by ``1 - p``."""
    return (x * keep_mask(x, p)).to(x.dtype) if has_cheap_masks(x, p) else F.dropout(x, p)


def keep_mask(like: Tensor, p: float) -> Tensor:
    """A mask of zeros and of ``1 / (1 - p)``, drawn from torch's generator of the CPU.

    Torch's own mask draws a number of 53 bits for every element, in a loop that takes 6 ns for
    each. Here 64 bits are drawn for four elements.

    It has the shape of ``like``, on the CPU, and is of float32: a narrower type would round the
    scale. ``p`` is from 0 to below 1.
    """
    dropped = min(round(p * STEPS), STEPS - 1)
    count = like.numel()
    bits = torch.empty(-(-count // 4), dtype=torch.int64).random_(-(2**63), None)
    words = bits.view(torch.int16)[:count].view(like.shape)
    mask = torch.empty(like.shape)
    torch.ge(words, dropped - STEPS // 2, out=mask)
    return mask.mul_(STEPS / (STEPS - dropped))


def has_cheap_masks(x: Tensor, p: float) -> bool:
    """Whether masks for ``x`` are those of :func:`keep_mask`."""
    on_cpu = x.device.type == "cpu" and not torch.compiler.is_compiling()
    return on_cpu and p < 1 and fast.now().dropout_masks


class _AddDropped(torch.autograd.Function):
    """The residual plus the masked ``x``: one pass over memory instead of two, both ways."""

    @staticmethod
    @override
    def forward(ctx: Any, residual: Tensor, x: Tensor, mask: Tensor) -> Tensor:
        ctx.save_for_backward(mask)
        ctx.dtype = x.dtype
        return torch.addcmul(residual, x.to(residual.dtype), mask.to(residual.dtype))

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, Tensor, None]:
        (mask,) = ctx.saved_tensors
        return grad, (grad * mask).to(ctx.dtype), None
