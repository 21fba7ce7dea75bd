"""Losses that compare the rows of a batch, of which each rank has a share."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Loss


class ComparedRows:
    """Computes a loss that compares rows: those it is given, or also those of the other ranks.

    Example:
        >>> def spread(vectors, targets):
        ...     return torch.pdist(vectors).sum(), torch.tensor(float(len(vectors)))
        >>> rows = ComparedRows()
        >>> loss = rows.loss(spread, torch.tensor([[0.0, 0.0], [3.0, 4.0]]), torch.zeros(2))
        >>> loss.total, loss.count
        (tensor(5.), tensor(2.))
    """

    def __init__(self) -> None:
        self._ranks: Ranks | None = None
        self._counted = True

    @contextmanager
    def over(self, ranks: Ranks, *, counted: bool) -> Iterator[None]:
        """Compares the rows of all ranks, which all are here, while the block runs.

        Args:
            ranks: Those that share the batch.
            counted: Whether this rank's rows are its own; else it has none of this batch.
        """
        self._ranks, self._counted = ranks, counted
        try:
            yield
        finally:
            self._ranks, self._counted = None, True

    def loss(self, compare: Callable[..., Any], vectors: Tensor, targets: Tensor) -> Loss:
        """The loss that ``compare(vectors, targets)`` gives of all rows.

        Each rank computes all of it from the vectors of all ranks. Only its own have a graph: the
        sum of the ranks' gradients is that of the whole. The value and the count are those of
        the first rank that has rows, and 0 on the others.

        Args:
            compare: Gives the sum and what it is divided by.
            vectors: *Shape:* :math:`(B,...)`.
            targets: *Shape:* :math:`(B,...)`.
        """
        if self._ranks is None:
            return Loss.of(compare(vectors, targets), compare)
        ranks, stop = self._ranks, len(vectors) if self._counted else 0
        own = vectors.float()
        parts = ranks.gather_rows(own[:stop].detach())
        all_targets = torch.cat(ranks.gather_rows(targets[:stop]))
        first = next(rank for rank, part in enumerate(parts) if len(part))
        parts[ranks.env.rank] = own[:stop]
        loss = Loss.of(compare(torch.cat(parts), all_targets), compare)
        if ranks.env.rank == first:
            return loss
        unseen = own[stop:].sum() * 0  # a rank without rows takes part in the backward pass
        return Loss(loss.total - loss.total.detach() + unseen, loss.count * 0)


@runtime_checkable
class ComparesRows(Protocol):
    """A task whose loss may compare the rows of a batch."""

    compared_rows: ComparedRows | None
    """What does so; None: the loss is a sum over single rows."""
