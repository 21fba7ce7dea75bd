"""Batches of encoded columns, epoch after epoch, resumable at every position."""

import copy
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from textmill.data.batching import (
    Batching,
    Filler,
    PlanStatistics,
    plan_epoch,
    plan_statistics,
    split,
)
from textmill.data.mixture import permuted, window_of
from textmill.errors import DataError
from textmill.text.ragged import Ragged

B = TypeVar("B")

OF_ROWS = 1
"""Tells the order of all rows from what else a seed and an epoch decide."""


class EpochBatches(Generic[B]):
    """One iteration gives what is left of one epoch; the next iteration is the next epoch.

    ``position`` counts the batches given out, so a state saved while a batch is worked on resumes
    with the batch after it. An epoch ends when the iterator is asked for more than it has: a state
    saved at its last batch resumes with an empty rest, and what is done at the end of an epoch is
    then done once. A loop left early keeps its position.

    Args:
        columns: Encoded columns by name, all of one number of rows; their order is that of
            ``plan_epoch``.
        collate: Makes a batch of row indices.
        rows: Numbers of the rows that take part, rising; None: all. The plan is that of columns
            with these rows alone, and no row is copied; ``collate`` gets their own numbers.
        rank: This process; it gets its share of every batch (``split``), None where a batch has too
            few rows.
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
        self._columns, self._rows = dict(columns), rows
        self._collate, self._seed = collate, seed
        self._rank, self._world_size, self._fill = rank, world_size, False
        size = window_of(self.num_rows, batching.batch_size) if batching.shuffle else self.num_rows
        self._window_rows, self.num_windows = size, -(-self.num_rows // size)
        self._window, self._at = 0, 0  # the one under way, and batches of it given out
        mixture = batching.mixture
        self.mixture = mixture if mixture is None or rows is None else mixture.of_rows(rows)
        """Which rows an epoch has, of those that take part; None: each once."""
        if self.mixture is not None:
            self.mixture.refuse_empty()
        self._planned: tuple[tuple[int, int], list[NDArray[np.int64]]] | None = None
        self._estimate: int | None = None
        self._lengths: dict[str, NDArray[np.int64]] | None = None

    @property
    def lengths(self) -> dict[str, NDArray[np.int64]]:
        """Ids of every row that takes part, by column; kept where an epoch is planned at once."""
        if self._lengths is not None:
            return self._lengths
        taking_part: NDArray[np.int64] | slice = slice(None) if self._rows is None else self._rows
        found = {name: column.lengths[taking_part] for name, column in self._columns.items()}
        if self.num_windows == 1:
            self._lengths = found
        return found

    @property
    def plan(self) -> list[NDArray[np.int64]]:
        """Row indices of every batch, over all ranks, of the present epoch or of its window."""
        now = (self.epoch, self._window)
        if self._planned is None or self._planned[0] != now:
            self._planned = now, self._plan(*now)
        return self._planned[1]

    def _plan(self, epoch: int, window: int) -> list[NDArray[np.int64]]:
        batching, in_windows = self.batching, self.num_windows > 1
        if not in_windows and self.mixture is None:
            lengths = [*self.lengths.values()]
            return plan_epoch(lengths, batching, seed=self._seed, epoch=epoch)
        first, seed = window * self._window_rows, self._seed % 2**64
        chosen = np.arange(first, min(first + self._window_rows, self.num_rows))
        if in_windows:
            chosen = permuted(chosen, self.num_rows, [seed, epoch, OF_ROWS])
        if self.mixture is not None:
            chosen = self.mixture.rows(chosen, seed=seed, epoch=epoch)
        numbers = chosen if self._rows is None else self._rows[chosen]
        columns = self._columns.values()
        lengths = [column.offsets[numbers + 1] - column.offsets[numbers] for column in columns]
        number = window if in_windows else None
        plan = plan_epoch(lengths, batching, seed=self._seed, epoch=epoch, window=number)
        return [chosen[batch] for batch in plan]

    @property
    def statistics(self) -> PlanStatistics:
        """Rows, tokens and padding of the present epoch; of one in windows, of that under way."""
        return plan_statistics([*self.lengths.values()], self.plan)

    def __len__(self) -> int:
        """Batches of the present epoch, from its beginning.

        Of an epoch in windows whose batches have a number of tokens it is what there would be if
        all windows had as many as the first.
        """
        if self.num_windows == 1:
            return len(self.plan)
        if (size := self.batching.batch_size) is not None:
            return -(-self.num_rows // size)
        if self._estimate is None:
            first = len(self._plan(0, 0))
            self._estimate = -(-first * self.num_rows // self._window_rows)
        return self._estimate

    def __iter__(self) -> Iterator[Any]:
        epoch = self.epoch
        while self.epoch == epoch:
            plan = self.plan
            if self._at < len(plan):
                chosen = split(plan[self._at], self._rank, self._world_size)
                batch: Any = self.gathered(chosen) if len(chosen) else None
                if batch is None and self._fill:
                    batch = Filler(self.gathered(plan[self._at][:1]))
                self.position, self._at = self.position + 1, self._at + 1
                yield batch
            elif self._window + 1 < self.num_windows:
                self._window, self._at = self._window + 1, 0
            else:
                self.epoch, self.position, self._window, self._at = epoch + 1, 0, 0, 0

    def with_max_tokens(self, number: int) -> "EpochBatches[B]":
        """The same rows in batches of another size, from the first epoch's beginning."""
        other = copy.copy(self)
        other.batching = replace(self.batching, max_tokens=number)
        other.epoch, other.position, other._window, other._at = 0, 0, 0, 0
        other._planned = other._estimate = None
        return other

    def share(self, rank: int, world_size: int, *, fill: bool = False) -> "EpochBatches[B]":
        """The same batches, of which one rank has its share.

        A batch that it has no row of is None, or with ``fill`` a :class:`Filler`.
        """
        other = copy.copy(self)
        other._rank, other._world_size, other._fill = rank, world_size, fill
        return other

    def gathered(self, chosen: NDArray[np.int64]) -> B:
        """The batch of some rows, by their indices as ``plan`` and ``lengths`` have them."""
        return self._collate(chosen if self._rows is None else self._rows[chosen])

    def state_dict(self) -> dict[str, int]:
        state = {"epoch": self.epoch, "position": self.position}
        return state if self.num_windows == 1 else {**state, "window": self._window, "at": self._at}

    def load_state_dict(self, state: Mapping[str, int]) -> None:
        """Goes to a saved place; nothing is read or skipped over."""
        before = (self.epoch, self.position, self._window, self._at)
        self.epoch, self.position = int(state["epoch"]), int(state["position"])
        self._window = int(state.get("window", 0))
        self._at = int(state.get("at", self.position))
        same = (self.num_windows > 1) == ("window" in state)
        exists = self.epoch >= 0 and 0 <= self._window < self.num_windows
        if same and exists and 0 <= self._at <= len(self.plan):
            return
        self.epoch, self.position, self._window, self._at = before
        raise DataError(
            f"The saved place {dict(state)} does not exist: an epoch has {len(self)} batches of "
            f"{self.num_rows} rows. The data or its batching has changed since it was saved."
        )
