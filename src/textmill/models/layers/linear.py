"""Affine layers, by the library of matrix products that is fastest here."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.models import fast

ROWS = 64
"""oneDNN prepares itself for every number of rows it meets (2 ms and more each, and it keeps 1,024
preparations): batches of any size come to it in multiples of this."""


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
    if not compiling and fast.linear_library() == "onednn" and _suits_onednn(x):
        y: Tensor = _OneDnnLinear.apply(x, weight, bias)  # type: ignore[no-untyped-call]
        return y
    return F.linear(x, weight, bias)


def _suits_onednn(x: Tensor) -> bool:
    return (
        x.device.type == "cpu"
        and x.dtype == torch.float32
        and x.numel() >= ROWS * x.shape[-1]
        and not torch.is_autocast_enabled("cpu")
    )


class _OneDnnLinear(torch.autograd.Function):
    """The affine map and its gradient through oneDNN, for whole multiples of :data:`ROWS` rows."""

    @staticmethod
    @override
    def forward(ctx: Any, x: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        rows = _padded(x)
        ctx.save_for_backward(rows, weight)
        ctx.has_bias = bias is not None
        y = _product(rows, weight, bias)
        return y[: x.numel() // x.shape[-1]].view(*x.shape[:-1], len(weight))

    @staticmethod
    @override
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, weight = ctx.saved_tensors
        rows, dx, dw, db = _padded(grad), None, None, None
        if ctx.needs_input_grad[0]:
            dx = _product(rows, weight.t())[: grad.numel() // grad.shape[-1]]
            dx = dx.view(*grad.shape[:-1], x.shape[-1])
        if ctx.needs_input_grad[1]:
            dw = _product(rows.t(), x.t())
        if ctx.has_bias and ctx.needs_input_grad[2]:
            db = rows.sum(0)
        return dx, dw, db


def _padded(x: Tensor) -> Tensor:
    rows = x.reshape(-1, x.shape[-1])
    missing = -len(rows) % ROWS
    return F.pad(rows, (0, 0, 0, missing)) if missing else rows


def _product(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    y: Tensor = torch.ops.mkldnn._linear_pointwise(x, weight, bias, "none", [], "")
    return y
