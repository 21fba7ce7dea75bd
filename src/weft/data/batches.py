"""Batches of encoded columns, epoch after epoch, resumable at every position."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from weft.data.batching import (
    Batching,
    PlanStatistics,
    over_budget,
    plan_epoch,
    plan_statistics,
    split,
)
from weft.errors import DataError
from weft.text.ragged import Ragged

__all__ = ["EpochBatches"]

B = TypeVar("B")


class EpochBatches(Generic[B]):
    """One iteration gives what is left of one epoch; the next iteration is the next epoch.

    ``position`` counts the batches given out, so a state saved while a batch is worked on resumes
    with the batch after it. An epoch ends when the iterator is asked for more than it has: a state
    saved at its last batch resumes with an empty rest, and what is done at the end of an epoch is
    then done once. A loop left early keeps its position.

    Args:
        columns: Encoded columns by name, all of one number of rows; their order is that of
            ``plan_epoch``.
        batching: How rows become batches.
        collate: Makes a batch of row indices.
        seed: The run's seed.
        rows: Numbers of the rows that take part, rising; None: all. The plan is that of columns
            with these rows alone, and no row is copied; ``collate`` gets their own numbers.
        rank: This process; it gets its share of every batch (``split``), empty where a batch has
            too few rows.
        world_size: Number of processes.

    Example:
        >>> column = Ragged.from_lists([[1], [2, 3], [4], [5, 6]])
        >>> batching = Batching(batch_size=2, shuffle=False)
        >>> batches = EpochBatches({"ids": column}, batching, lambda rows: rows.tolist(), seed=1)
        >>> list(batches), batches.state_dict()
        ([[0, 2], [1, 3]], {'epoch': 1, 'position': 0})
        >>> batches.load_state_dict({"epoch": 5, "position": 1})
        >>> list(batches)
        [[1, 3]]
    """

    def __init__(
        self,
        columns: Mapping[str, Ragged],
        batching: Batching,
        collate: Callable[[NDArray[np.int64]], B],
        *,
        seed: int,
        rows: NDArray[np.int64] | None = None,
        rank: int = 0,
        world_size: int = 1,
    ) -> None:
        counts = {name: len(column) for name, column in columns.items()}
        if len(set(counts.values())) != 1:
            raise DataError(f"Columns must have one number of rows, but have {counts}.")
        self.num_rows = next(iter(counts.values())) if rows is None else len(rows)
        if not self.num_rows:
            raise DataError("There are no rows to make batches of.")
        self.batching, self.epoch, self.position = batching, 0, 0
        taking_part: NDArray[np.int64] | slice = slice(None) if rows is None else rows
        self.lengths = {name: column.lengths[taking_part] for name, column in columns.items()}
        """Ids of every row that takes part, by column."""
        self._rows = rows
        self._lengths = list(self.lengths.values())
        self._collate, self._seed = collate, seed
        self._rank, self._world_size = rank, world_size
        self._planned: tuple[int, list[NDArray[np.int64]]] | None = None

    @property
    def plan(self) -> list[NDArray[np.int64]]:
        """Row indices of every batch of the present epoch, over all ranks."""
        if self._planned is None or self._planned[0] != self.epoch:
            plan = plan_epoch(self._lengths, self.batching, seed=self._seed, epoch=self.epoch)
            self._planned = (self.epoch, plan)
        return self._planned[1]

    @property
    def statistics(self) -> PlanStatistics:
        """Rows, tokens and padding of the present epoch."""
        return plan_statistics(self._lengths, self.plan)

    @property
    def over_budget(self) -> NDArray[np.int64]:
        """Indices of the rows that are over ``max_tokens`` alone; each is a batch of its own."""
        return over_budget(self._lengths, self.batching)

    def __len__(self) -> int:
        """Batches of the present epoch, from its beginning."""
        return len(self.plan)

    def __iter__(self) -> Iterator[B]:
        epoch, plan = self.epoch, self.plan
        while self.epoch == epoch and self.position < len(plan):
            batch = self.gathered(split(plan[self.position], self._rank, self._world_size))
            self.position += 1
            yield batch
        if self.epoch == epoch:
            self.epoch, self.position = epoch + 1, 0

    def with_max_tokens(self, number: int) -> "EpochBatches[B]":
        """The same rows in batches of another size, from the first epoch's beginning."""
        other = copy.copy(self)
        other.batching = replace(self.batching, max_tokens=number)
        other.epoch, other.position, other._planned = 0, 0, None
        return other

    def gathered(self, chosen: NDArray[np.int64]) -> B:
        """The batch of some rows, by their indices as ``plan`` and ``lengths`` have them."""
        return self._collate(chosen if self._rows is None else self._rows[chosen])

    def state_dict(self) -> dict[str, int]:
        """Where the iteration stands."""
        return {"epoch": self.epoch, "position": self.position}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Goes to a saved place; nothing is read or skipped over.

        Raises:
            DataError: The place does not exist: the state is of other data or other batching.
        """
        before = self.state_dict()
        self.epoch, self.position = int(state["epoch"]), int(state["position"])
        if self.epoch < 0 or not 0 <= self.position <= len(self.plan):
            found, self.epoch, self.position = dict(state), before["epoch"], before["position"]
            raise DataError(
                f"The saved place {found} does not exist: an epoch has {len(self.plan)} batches of "
                f"{self.num_rows} rows. The data or its batching has changed since it was saved."
            )
