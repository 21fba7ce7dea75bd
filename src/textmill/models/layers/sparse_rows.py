"""Rows of numbers most of which are 0, and their product with a table of weights."""

from functools import cached_property
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional as F
from typing_extensions import override

__all__ = ["SparseRows"]

Sorted = tuple[Tensor, Tensor, Tensor]
"""What stands beside sorted numbers, where each new one begins, and the values."""


class SparseRows:
    """A matrix of which only the numbers that are not 0 are kept; it is made once, and used often.

    A product reads a row of the table for each number; so does its gradient, over the transposed
    matrix, which is sorted once. Torch's own sparse matrices have no gradient as fast: for 2,000
    texts of 200 n-grams 28 ms, not 1 (one core), without the sorting.

    Args:
        rows: The row of each number, in any order. *Shape:* :math:`(N)`.
        columns: Its column. *Shape:* :math:`(N)`.
        values: The number. *Shape:* :math:`(N)`.
        shape: Number of rows, and of columns.

    Example:
        >>> rows = torch.tensor([0, 1, 0]), torch.tensor([2, 1, 0]), torch.tensor([1.0, 2.0, 3.0])
        >>> table = torch.tensor([[1.0], [2.0], [3.0]], requires_grad=True)
        >>> out = SparseRows(*rows, shape=(2, 3)).times(table)
        >>> out.sum().backward()
        >>> out.tolist(), table.grad.tolist()
        ([[6.0], [4.0]], [[3.0], [2.0], [1.0]])
    """

    def __init__(
        self, rows: Tensor, columns: Tensor, values: Tensor, *, shape: tuple[int, int]
    ) -> None:
        self.shape = shape
        self._by_row = _sorted(rows.int(), columns.int(), values, shape[0])

    def __len__(self) -> int:
        """How many numbers are kept."""
        return len(self._by_row[0])

    @cached_property
    def _by_column(self) -> Sorted:
        """Of the transposed matrix."""
        columns, starts, values = self._by_row
        numbers = torch.arange(len(starts), dtype=torch.int32, device=starts.device)
        counts = starts.diff(append=starts.new_tensor([len(columns)]))
        return _sorted(columns, numbers.repeat_interleave(counts), values, self.shape[1])

    def times(self, table: Tensor) -> Tensor:
        """The product, differentiable by the table. *Shape:* :math:`(V,L)` to :math:`(B,L)`."""
        out: Tensor = _Product.apply(table, self)  # type: ignore[no-untyped-call]
        return out


class _Product(torch.autograd.Function):
    @staticmethod
    @override
    def forward(ctx: Any, table: Tensor, rows: SparseRows) -> Tensor:
        ctx.rows = rows
        return _sums(table, *rows._by_row)

    @staticmethod
    @override
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        return _sums(gradients[0].contiguous(), *ctx.rows._by_column), None


def _sorted(by: Tensor, other: Tensor, values: Tensor, size: int) -> Sorted:
    order = torch.argsort(by, stable=True)
    counts = torch.bincount(by, minlength=size)
    return other[order], (counts.cumsum(0) - counts).int(), values[order]


def _sums(table: Tensor, indices: Tensor, starts: Tensor, values: Tensor) -> Tensor:
    return F.embedding_bag(indices, table, starts, mode="sum", per_sample_weights=values)
