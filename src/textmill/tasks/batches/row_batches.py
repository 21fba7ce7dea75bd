"""Batches of encoded rows, and what tells rows from batches."""

import copy
import itertools
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from contextlib import contextmanager
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor

from textmill.config.validators import refuse_read_once
from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.data.mixture import Mixture
from textmill.errors import DataError
from textmill.runtime.ranks import Ranks
from textmill.tasks.batches.user_batches import Resumable
from textmill.tasks.task import Loss, Row, Task

MOST_ROWS = 5_000_000
"""Most rows of data without a length: some 2 GB as dictionaries, and seconds to read."""


@runtime_checkable
class RowSource(Protocol):
    """Data that has all its rows at hand and says how they become batches."""

    @property
    def batching(self) -> Batching:
        """How rows become batches."""

    def rows(self) -> Sequence[Row]:
        """All rows."""


class RowBatches:
    """Batches gathered from encoded rows; their order is a pure function of (seed, epoch).

    ``rows`` are all of the data, by the numbers that batches have, also those that are in no batch;
    ``details`` are what an evaluation says of rows that do not count in a value.
    """

    def __init__(
        self,
        batches: EpochBatches[Any],
        rows: Sequence[Row],
        *,
        details: Mapping[str, str] | None = None,
    ) -> None:
        self.batches, self.rows = batches, rows
        self.details = dict(details or {})

    @property
    def epoch(self) -> int:
        return self.batches.epoch

    @property
    def mixture(self) -> Mixture | None:
        return self.batches.mixture

    def share(self, rank: int, world_size: int, *, fill: bool = False) -> "RowBatches":
        """The same batches, of which one rank has its share of rows; of others None or a filler."""
        other = copy.copy(self)
        other.batches = self.batches.share(rank, world_size, fill=fill)
        return other

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def __len__(self) -> int:
        return len(self.batches)

    def examples(self, batch: Any) -> list[Mapping[str, Any]]:
        return [{"row": i, **self.rows[i]} for i in batch.rows.tolist()]

    def state_dict(self) -> dict[str, Any]:
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.batches.load_state_dict(dict(state))


def is_row(item: Any, columns: Collection[str] = ()) -> bool:
    """Whether an item is a row, and not a ready batch that is a dictionary.

    A row has text in one of ``columns``. Other dictionaries are rows, if bad ones, where no value
    is a tensor, an array or a list.
    """
    if not isinstance(item, Mapping):
        return False
    if any(isinstance(item.get(name), str) for name in columns):
        return True
    return not any(isinstance(v, Sized) and not isinstance(v, str | bytes) for v in item.values())


def check_batch(task: Task, batch: Any, kind: type, *, train: bool) -> None:
    """Refuses, before step 1, a batch that only a recipe's own task could work with."""
    if hasattr(batch, "to") and not isinstance(batch, Tensor | Mapping):
        return
    step = "training_step" if train else "validation_step"
    methods = [getattr(type(task), name, task.batches) for name in (step, "logits")]
    if not all(method.__module__.startswith("textmill.") for method in methods):
        return
    raise DataError(
        f"The data gives batches of type {type(batch).__name__}, but {type(task).__name__} takes "
        f"a {kind.__name__}. Make one of them, or override {step}. For rows, give dictionaries "
        f"that have the text of {' and '.join(map(repr, task.text.columns))}."
    )


def rows_of(data: Iterable[Row], *, train: bool) -> tuple[Sequence[Row], Batching]:
    """All rows of data, in memory, and how they become batches."""
    if isinstance(data, RowSource):
        return data.rows(), data.batching
    rows = list(data if isinstance(data, Sized) else itertools.islice(data, MOST_ROWS + 1))
    if len(rows) > MOST_ROWS and not isinstance(data, Sized):
        raise DataError(
            f"The data, a {type(data).__name__} without a length, gives more than {MOST_ROWS:,} "
            "rows; rows are all read before step 1. If it has no end, end an epoch with take(n), "
            "or yield ready batches, which are read one by one. If it is only long, read it by "
            "TextPairs, or give a list of its rows."
        )
    return rows, Batching(shuffle=train)


def peek_first(data: Iterable[Any]) -> tuple[Any, Iterable[Any]]:
    """The first item of an iterable, and the iterable as it was before.

    Example:
        >>> peek_first([{"source": "Go."}, {"source": "Run!"}])[0]
        {'source': 'Go.'}
    """
    refuse_read_once(data, "The data")
    state = data.state_dict() if isinstance(data, Resumable) else None
    items = iter(data)
    first = next(items, _NOTHING)
    if isinstance(items, Generator):
        items.close()  # what it has opened is let go now
    if isinstance(data, Resumable):
        data.load_state_dict(state)
    if first is _NOTHING:
        raise DataError(f"The data, a {type(data).__name__}, is empty: wanted rows or batches.")
    return first, data


def peek(data: Iterable[Any]) -> Any:
    return peek_first(data)[0]


_NOTHING = object()


class ComparedRows:
    """Computes a loss that compares rows: those it is given, or also those of the other ranks.

    A task whose loss does so has one as its attribute ``compared_rows``.
    """

    def __init__(self) -> None:
        self._ranks: Ranks | None = None
        self._counted = True

    @contextmanager
    def over(self, ranks: Ranks, *, counted: bool) -> Iterator[None]:
        """Compares the rows of all ranks, which all are here, while the block runs."""
        self._ranks, self._counted = ranks, counted
        try:
            yield
        finally:
            self._ranks, self._counted = None, True

    def loss(self, compare: Callable[..., Any], vectors: Tensor, targets: Tensor) -> Loss:
        """The loss that ``compare(vectors, targets)`` gives of all rows: a sum and its divisor.

        Each rank computes all of it from the vectors of all ranks. Only its own have a graph: the
        sum of the ranks' gradients is that of the whole. The value and the count are those of the
        first rank that has rows, and 0 on the others. *Shape:* :math:`(B,...)` both.
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
