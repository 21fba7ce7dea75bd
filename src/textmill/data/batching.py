"""Which rows go into which batch: a pure function of (lengths, settings, seed, epoch).

Rows of like length share a batch, so that little of it is padding; the batches come in random
order. Nothing but the epoch's number is needed to make the same plan again, which is why resuming
costs nothing and why every rank can make the whole plan for itself and take its share of each step.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, NamedTuple, Protocol, TypeAlias, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from textmill.config.component import typed_construction
from textmill.config.validators import refuse_read_once
from textmill.data.mixture import Mixture
from textmill.errors import UserError
from textmill.text import cells

Indices = NDArray[np.int64]

MaxTokens: TypeAlias = int | Literal["auto"] | None

OF_WINDOWS = 2
"""Tells what a window decides from what a seed and an epoch do."""
WINDOW = 100
"""Batches of ``batch_size`` rows whose rows are sorted by length together."""


class Filler(NamedTuple):
    """A part of a batch of which this rank has no row: its loss and its rows do not count.

    Where all ranks compute a step together, one without a row computes with it.
    """

    batch: Any
    """As other batches are."""


@typed_construction
@dataclass(frozen=True)
class Batching:
    """How rows become batches."""

    max_tokens: MaxTokens = 2048
    """Most cells of one step, over all ranks: padded source plus padded target.

    Not used where ``batch_size`` is set. ``auto`` stands for a number that is found when a run
    starts."""
    batch_size: int | None = None
    """Rows of one step, over all ranks."""
    shuffle: bool = True
    """Whether ties, windows and the order of batches are random; else from short to long."""
    by_length: bool = True
    """Whether rows of like length share a batch of ``batch_size`` rows in training."""
    mixture: Mixture | None = field(default=None, repr=False)
    """Which rows an epoch has, of several sources; None: every row once."""

    def __post_init__(self) -> None:
        if self.max_tokens is None and self.batch_size is None:
            raise UserError("Batches need a size: set max_tokens or batch_size.")
        if self.max_tokens == "auto" and self.batch_size is not None:
            raise UserError(
                f"max_tokens=auto finds a number that would not be used, since batch_size is "
                f"{self.batch_size}. Set batch_size=null, or leave max_tokens=auto out."
            )
        for name in ("max_tokens", "batch_size"):
            value = getattr(self, name)
            if isinstance(value, int) and value < 1:
                raise UserError(f"{name} must be 1 or more, but is {value}.")

    @property
    def is_auto(self) -> bool:
        """Whether the number of tokens is still to be found."""
        return self.max_tokens == "auto"


@runtime_checkable
class TakesMaxTokens(Protocol):
    """Data that may have ``max_tokens=auto``."""

    def take_max_tokens(self, number: int) -> None: ...


class Batched:
    """Data whose Config says how its rows become batches: base of the library's own data sets."""

    config: Any

    @property
    def batching(self) -> Batching:
        config = self.config
        return Batching(
            max_tokens=config.max_tokens, batch_size=config.batch_size, shuffle=config.shuffle
        )

    @property
    def keeps_tokens(self) -> bool:
        """Whether the ids of the rows are to be kept for later runs, where their Config says it."""
        return bool(getattr(self.config, "keep_tokens", True))

    def take_max_tokens(self, number: int) -> None:
        """Takes the number that was found for ``auto``; the Config has it from here on."""
        self.config = replace(self.config, max_tokens=number)


def plan_epoch(
    lengths: Sequence[NDArray[np.int64]],
    batching: Batching,
    *,
    seed: int,
    epoch: int,
    window: int | None = None,
) -> list[Indices]:
    """Plans one epoch, or a window of one; every row is in exactly one batch.

    A row that is over ``max_tokens`` by itself makes a batch alone.

    ``lengths`` are those of every row in each column, say source and target, *Shape:* ``[n]`` each.
    Epochs and windows are counted from 0; with a ``window``, these are its rows alone.
    """
    counts = [len(column) for column in lengths]
    if len({*counts}) != 1:
        raise ValueError(f"plan_epoch: columns must be of one length, but have {counts} rows.")
    if not (count := counts[0]):
        return []
    entropy = [seed % 2**64, epoch]
    entropy += [] if window is None else [OF_WINDOWS, window]
    # PCG64 by name: default_rng may change its generator between versions of numpy.
    random = np.random.Generator(np.random.PCG64(np.random.SeedSequence(entropy)))
    first = random.permutation(count) if batching.shuffle else np.arange(count)
    size, order = batching.batch_size, first
    windows = np.arange(count) // (size * WINDOW if size and batching.shuffle else count)
    if size is None or batching.by_length or not batching.shuffle:
        order = first[_by_length([column[first] for column in lengths], windows)]
    if size is None:
        cuts = _fill([column[order] for column in lengths], _number(batching))
    else:
        cuts = [*range(0, count, size)]
    batches = [order[i:j] for i, j in zip(cuts, [*cuts[1:], count], strict=True)]
    if batching.shuffle:
        batches = [batches[i] for i in random.permutation(len(batches))]
    return batches


def _number(batching: Batching) -> int:
    if not isinstance(batching.max_tokens, int):
        raise UserError(
            "max_tokens=auto is found when textmill train starts a run, and this is not a run. "
            "Give a number."
        )
    return batching.max_tokens


def split(batch: Indices, rank: int, world_size: int) -> Indices:
    """The share of one rank in a step; the shares of all ranks are the whole step, each row once.

    Every ``world_size``-th row, since neighbours have like lengths. With fewer rows than ranks a
    share is empty.
    """
    if not 0 <= rank < world_size:
        raise ValueError(f"split: rank must be from 0 to {world_size - 1}, but is {rank}.")
    return batch[rank::world_size]


@dataclass(frozen=True)
class PlanStatistics:
    """What a plan holds."""

    batches: int
    rows: int
    tokens: int
    """Cells that hold an id."""
    cells: int
    """Cells of the padded rectangles, all columns."""

    @property
    def padding(self) -> float:
        """Share of cells that are padding, from 0 to 1."""
        return (self.cells - self.tokens) / self.cells if self.cells else 0.0


def largest_batch(lengths: Sequence[NDArray[np.int64]], plan: Sequence[Indices]) -> int:
    """Number of the batch of a plan that takes the most memory: many cells, then long rows.

    Of the batches with 95 % of the most cells it is the one with the longest rows, since attention
    takes more of a long row than of two short ones.
    """
    sizes = np.array([len(batch) for batch in plan], dtype=np.int64)
    order, starts = np.concatenate(plan), np.cumsum(sizes) - sizes
    width = sum(np.maximum.reduceat(column[order], starts) for column in lengths)
    cells = width * sizes
    return int(np.argmax(np.where(cells >= 0.95 * cells.max(), width, -1)))


def plan_statistics(
    lengths: Sequence[NDArray[np.int64]], plan: Sequence[Indices]
) -> PlanStatistics:
    """Counts rows, tokens and padded cells of a plan."""
    sizes = np.array([len(batch) for batch in plan], dtype=np.int64)
    if not len(plan):
        return PlanStatistics(0, 0, 0, 0)
    order, starts = np.concatenate(plan), np.cumsum(sizes) - sizes
    columns = [column[order] for column in lengths]
    cells = sum(int((np.maximum.reduceat(column, starts) * sizes).sum()) for column in columns)
    return PlanStatistics(
        len(plan), len(order), sum(int(column.sum()) for column in columns), cells
    )


def _by_length(lengths: Sequence[NDArray[np.int64]], window: Indices) -> Indices:
    """Order by window, then the last column's length (the target's), then the first's; stable.

    The first column rises and falls in turn from one target length to the next: where a batch spans
    two target lengths, its sources are then of like length.
    """
    target, source = lengths[-1], lengths[0]
    snake = np.where(target % 2 == 0, source, -source)
    return np.lexsort((snake, target, window))


def _fill(lengths: Sequence[NDArray[np.int64]], max_tokens: int) -> list[int]:
    """Where batches begin, each filled until one more row would take it over ``max_tokens``."""
    count, start, cuts = len(lengths[0]), 0, []
    while start < count:
        cuts.append(start)
        # No later row makes the rectangle narrower, so this many rows are the most that can fit.
        most = max_tokens // max(1, sum(int(column[start]) for column in lengths))
        stop = min(count, start + max(1, most))
        width = sum(np.maximum.accumulate(column[start:stop]) for column in lengths)
        fits = np.searchsorted(width * np.arange(1, stop - start + 1), max_tokens, side="right")
        start += max(1, int(fits))
    return cuts


class BatchedRows:
    """Rows that say how they become batches; a plain list gets the defaults of ``Batching``.

    Args:
        rows: All rows, in memory; all else is as of :class:`Batching`.
    """

    def __init__(
        self,
        rows: cells.Rows,
        *,
        max_tokens: MaxTokens = Batching.max_tokens,
        batch_size: int | None = Batching.batch_size,
        shuffle: bool = Batching.shuffle,
    ) -> None:
        refuse_read_once(rows, "BatchedRows' rows")
        self._rows = rows
        self.batching = Batching(max_tokens=max_tokens, batch_size=batch_size, shuffle=shuffle)

    def take_max_tokens(self, number: int) -> None:
        self.batching = replace(self.batching, max_tokens=number)

    def rows(self) -> cells.Rows:
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        return iter(self._rows)
