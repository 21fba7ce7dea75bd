"""Which rows an epoch has, of several sources that are mixed by weight, and the order of many.

A source is read in an order of its own (a text in that of its rows), epoch after epoch of its own,
and each epoch of the mixture takes up its next rows. How many is the same in every epoch, so which
rows they are is a pure function of (seed, epoch), and a run that goes on needs no more than these.

What is planned at once holds some 60 bytes a row, and sorts them all before step 1. Of more than
`WHOLE_ROWS` rows one window after the other is planned: it is a random part of all rows, wherever
they are, and which ones is a pure function of (seed, epoch, window).
"""

import itertools
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textmill.errors import UserError

Numbers = NDArray[np.int64]
OF_SOURCES = 3
"""Tells the orders of sources from what else a seed and an epoch decide."""
WHOLE_ROWS = 1 << 19
"""Most rows that are planned at once; part of what a seed means, as all here is."""
WINDOW_ROWS = 1 << 18
"""Rows of a window, about: a fifth of a second of planning, and 5,000 batches of 50 rows."""
ROUNDS = 6


@dataclass(frozen=True)
class Mixture:
    """Sources of rows, one after the other, and their shares."""

    names: tuple[str, ...]
    sizes: tuple[int, ...]
    """Rows of each."""
    shares: tuple[float, ...]
    """Of each in the rows of an epoch; their sum is 1."""

    @classmethod
    def of(
        cls,
        names: Sequence[str],
        sizes: Sequence[int],
        *,
        weights: Sequence[float] | None,
        temperature: float | None,
    ) -> "Mixture":
        """The mixture of weights, of any sum, or of sizes to the power of 1 / ``temperature``."""
        if weights is not None and temperature is not None:
            raise UserError("weights and temperature both say how rows are mixed; leave one out.")
        if temperature is not None:
            if temperature < 1:
                raise UserError(
                    f"temperature: wanted 1 (by size) or more (towards equal shares), found "
                    f"{temperature:g}."
                )
            weights = [float(size) ** (1 / temperature) for size in sizes]
        assert weights is not None
        if len(weights) != len(names) or not all(0 < weight < float("inf") for weight in weights):
            raise UserError(
                f"weights: wanted a positive number for each of {', '.join(names)}, in this order; "
                f"found {', '.join(f'{weight:g}' for weight in weights)}."
            )
        total = sum(weights)
        made = cls(tuple(names), tuple(sizes), tuple(weight / total for weight in weights))
        made.refuse_empty()
        return made

    def refuse_empty(self) -> None:
        """Refuses sources that have no row, or whose share is less than one row."""
        for name, size, quota in zip(self.names, self.sizes, self.quotas, strict=True):
            if not quota or not size:
                raise UserError(
                    f"weights: of the {sum(self.sizes):,} rows of an epoch {quota:,} would be of "
                    f"{name}, of which {size:,} can be trained on. Leave it out, or give it more."
                )

    @property
    def quotas(self) -> tuple[int, ...]:
        """Rows of each source in an epoch, as many together as there are rows of all sources."""
        total = sum(self.sizes)
        exact = [share * total for share in self.shares]
        whole = [int(number) for number in exact]
        # What is left over goes to the largest remainders, the first of equal ones.
        most = sorted(range(len(whole)), key=lambda at: whole[at] - exact[at])
        for at in most[: total - sum(whole)]:
            whole[at] += 1
        return tuple(whole)

    def epochs(self, position: float) -> dict[str, float]:
        """How many epochs of its own each source has had after so many of the mixture."""
        each = zip(self.names, self.quotas, self.sizes, strict=True)
        return {name: round(position * quota / size, 3) for name, quota, size in each}

    def of_rows(self, numbers: Numbers) -> "Mixture":
        """The mixture of some of the rows, by their numbers, rising."""
        cuts = np.searchsorted(numbers, np.cumsum([0, *self.sizes])).tolist()
        sizes = tuple(b - a for a, b in itertools.pairwise(cuts))
        return Mixture(self.names, sizes, self.shares)

    def parts(self, epoch: int) -> list[tuple[int, int]]:
        """The parts that an epoch reads if each source is read in order.

        Each part is the number of its first row, and of the row after its last.
        """
        found, start = [], 0
        for size, quota in zip(self.sizes, self.quotas, strict=True):
            first, left = epoch * quota % size, quota
            while left:
                count = min(left, size - first)
                found.append((start + first, start + first + count))
                first, left = 0, left - count
            start += size
        return found

    def rows(self, places: Numbers, *, seed: int, epoch: int) -> Numbers:
        """The numbers of the rows at some places of an epoch, source after source."""
        found = np.empty_like(places)
        ends, starts = np.cumsum(self.quotas), np.cumsum(self.sizes) - self.sizes
        sources = np.searchsorted(ends, places, side="right")
        for source in np.unique(sources).tolist():
            chosen, size, quota = sources == source, self.sizes[source], self.quotas[source]
            place = places[chosen] - (ends[source] - quota) + epoch * quota
            own, inside = place // size, place % size
            numbers = np.empty_like(inside)
            for number in np.unique(own).tolist():
                key = [seed % 2**64, number, OF_SOURCES, source + 1]
                part = own == number
                numbers[part] = permuted(inside[part], size, key)
            found[chosen] = starts[source] + numbers
        return found


def is_mixed(config: Any) -> bool:
    """Whether settings of rows of columns say how their sources are mixed."""
    said = (getattr(config, "weights", None), getattr(config, "temperature", None))
    return said != (None, None)


def permuted(places: Numbers, count: int, key: Sequence[int]) -> Numbers:
    """The values of a random permutation of ``range(count)`` at some places, without making it.

    Each round is a bijection of the numbers of so many bits; a number beyond ``count`` goes through
    all rounds again (about one in two does).
    """
    bits = max(4, (count - 1).bit_length())
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    # Of a seed sequence numpy promises the same words in all versions, of a generator it does not.
    words = np.random.SeedSequence([*key]).generate_state(2 * ROUNDS, np.uint64)

    def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        for factor, term in words.reshape(ROUNDS, 2):
            numbers = (numbers * (factor | np.uint64(1)) + term) & mask
            numbers = numbers ^ (numbers >> shift)
        return numbers

    found = mixed(places.astype(np.uint64))
    while len(outside := np.flatnonzero(found >= count)):
        found[outside] = mixed(found[outside])
    return found.astype(np.int64)


def window_of(count: int, batch_size: int | None) -> int:
    """Rows of each window but the last: whole batches, where those have a number of rows."""
    if count <= WHOLE_ROWS:
        return max(1, count)
    size = batch_size or 1
    return max(1, WINDOW_ROWS // size) * size
