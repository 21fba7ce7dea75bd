"""Affine layers, by the library of matrix products that is fastest here."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.models import fast
from textmill.runtime import machine

ROWS, FEW = 64, 16
"""oneDNN prepares itself for every number of rows it meets (2 ms and more each, and it keeps 1,024
preparations): batches of any size come to it in multiples of the first, smaller ones of the second.
"""
LARGE = 1 << 22
"""Multiplications from which a product of float32 goes to oneDNN: the way there and back takes 150
microseconds, as long as torch's own product of 64 x 128 x 128."""


class LinearLayer(nn.Linear):
    """A ``torch.nn.Linear``, faster on some CPUs, see :class:`textmill.models.fast.Fast`."""

    @override
    def forward(self, x: Tensor) -> Tensor:
        return linear(x, self.weight, self.bias)


def init_xavier(*projections: nn.Linear) -> None:
    """Gives projections the weights of a block's start: Xavier-uniform, biases zero."""
    for projection in projections:
        nn.init.xavier_uniform_(projection.weight)
        nn.init.zeros_(projection.bias)


class TokenScores(Component, nn.Module):
    """Base of models that score tokens by the product of a state with a matrix."""

    affine: bool = True
    """Whether scores are the product of :meth:`head` with the two below, and nothing more."""
    output_weight: Tensor
    """*Shape:* :math:`(V,D)`."""
    output_bias: Tensor | None
    """*Shape:* :math:`(V)`."""

    def make_output(self, tokens: nn.Embedding, dim: int, *, tie: bool, bias: bool) -> None:
        """Makes both; with ``tie`` a token is scored by its own vector."""
        self.output_weight = tokens.weight
        if not tie:
            weight = torch.empty(tokens.num_embeddings, dim)
            self.output_weight = nn.Parameter(nn.init.normal_(weight, std=dim**-0.5))
        parameter = nn.Parameter(torch.zeros(tokens.num_embeddings)) if bias else None
        self.register_parameter("output_bias", parameter)

    def head(self, states: Tensor) -> Tensor:
        """What the matrix scores, :math:`(*,D)`: the states themselves, by default."""
        return states

    def project(self, hidden: Tensor) -> Tensor:
        """Logits of states. *Shape:* :math:`(*,D)` to :math:`(*,V)`."""
        return linear(self.head(hidden), self.output_weight, self.output_bias)


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    r"""Applies :math:`y = x W^\top + b` to the last dimension.

    *Shape:* :math:`(*,I)`, :math:`(O,I)` and :math:`(O)` to :math:`(*,O)`.
    """
    compiling = torch.compiler.is_compiling()  # asked first: it cannot trace what is cached
    if compiling or x.device.type != "cpu":
        return F.linear(x, weight, bias)
    narrow = is_in_bf16(x)
    if narrow or (
        x.numel() >= ROWS * x.shape[-1]
        and x.numel() * len(weight) >= LARGE
        and x.dtype == weight.dtype == torch.float32
        and not torch.is_autocast_enabled("cpu")
        and fast.linear_library() == "onednn"
    ):
        if not torch.is_grad_enabled():
            return _affine(x, weight, bias, narrow=narrow)[0]
        y: Tensor = _OneDnnLinear.apply(x, weight, bias, narrow)  # type: ignore[no-untyped-call]
        return y
    return F.linear(x, weight, bias)


def is_in_bf16(x: Tensor) -> bool:
    """Whether products with ``x`` are of bfloat16 by oneDNN: on a CPU, where autocast says so."""
    return (
        torch.is_autocast_enabled("cpu")
        and torch.get_autocast_dtype("cpu") == torch.bfloat16
        and x.device.type == "cpu"
        and x.dtype in (torch.float32, torch.bfloat16)
        and machine.has_bf16()
    )


_copies: ContextVar[dict[Tensor, Tensor] | None] = ContextVar("copies", default=None)


@contextmanager
def keeping_copies(copies: dict[Tensor, Tensor] | None) -> Iterator[None]:
    """Takes copies of parameters in bfloat16 from ``copies``, and puts those in that it makes.

    None keeps none. Whoever moves the weights has to clear it: the optimizers that torch calls
    fused change a parameter and do not count its version up.
    """
    token = _copies.set(copies)
    try:
        yield
    finally:
        _copies.reset(token)


def bf16_copy(tensor: Tensor) -> Tensor:
    """A tensor in bfloat16, without a gradient; of a parameter the copy that is kept."""
    copies = _copies.get()
    if copies is None or not isinstance(tensor, nn.Parameter):
        return tensor.detach().to(torch.bfloat16)
    if tensor not in copies:
        with torch.inference_mode(mode=False):  # else it could not be part of a graph later
            copies[tensor] = tensor.detach().to(torch.bfloat16)
    return copies[tensor]


class _OneDnnLinear(torch.autograd.Function):
    """The affine map and its gradient through oneDNN, in multiples of :data:`FEW` or ``ROWS`` rows.

    If it is ``narrow``, the products are of bfloat16, and so is the result; gradients have the
    types of what they are of.
    """

    @staticmethod
    @override
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None, narrow: bool) -> Tensor:
        ctx.has_bias, ctx.dtype, ctx.of_weight = bias is not None, x.dtype, weight.dtype
        y, *saved = _affine(x, weight, bias, narrow=narrow)
        ctx.save_for_backward(*saved)
        return y

    @staticmethod
    @override
    @once_differentiable
    def backward(
        ctx: Any, grad: Tensor
    ) -> tuple[Tensor | None, Tensor | None, Tensor | None, None]:
        x, weight = ctx.saved_tensors
        rows, dx, dw, db = _padded(grad, weight.dtype), None, None, None
        if ctx.needs_input_grad[0]:
            dx = product(rows, weight.t())[: grad.numel() // grad.shape[-1]]
            dx = dx.view(*grad.shape[:-1], x.shape[-1]).to(ctx.dtype)
        if ctx.needs_input_grad[1]:
            dw = product(rows.t(), x.t()).to(ctx.of_weight)
        if ctx.has_bias and ctx.needs_input_grad[2]:
            db = rows.sum(0, dtype=ctx.of_weight)
        return dx, dw, db, None


def _affine(
    x: Tensor, weight: Tensor, bias: Tensor | None, *, narrow: bool
) -> tuple[Tensor, Tensor, Tensor]:
    """The affine map, and the rows and the weight that were multiplied."""
    if narrow:
        weight, bias = bf16_copy(weight), None if bias is None else bf16_copy(bias)
    rows = _padded(x, weight.dtype)
    y = product(rows, weight, bias)
    return y[: x.numel() // x.shape[-1]].view(*x.shape[:-1], len(weight)), rows, weight


def _padded(x: Tensor, dtype: torch.dtype) -> Tensor:
    """The rows of ``x`` in a type, and zeros up to the next multiple, in one pass."""
    rows = x.reshape(-1, x.shape[-1])
    missing = -len(rows) % (FEW if len(rows) < ROWS else ROWS)
    if not missing:
        return rows.to(dtype)
    padded = rows.new_empty((len(rows) + missing, rows.shape[1]), dtype=dtype)
    padded[: len(rows)], padded[len(rows) :] = rows, 0
    return padded


def product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """What :func:`linear` applies, by oneDNN alone, without a gradient, for two dimensions."""
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y
