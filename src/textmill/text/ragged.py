"""Rows of different lengths in two flat arrays: what all encoded text is kept in.

A list of 156,000 small arrays costs 100 bytes and a Python object per row; two arrays cost 4 bytes
per token, and a padded batch is cut out of them without a Python step per row.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override


@dataclass(frozen=True, eq=False)
class Ragged:
    """``n`` rows of token ids; row ``i`` is ``values[offsets[i]:offsets[i + 1]]``.

    Args:
        values: *Shape:* ``[total]``, int32, or uint16 where a store is mapped into memory; all
            rows, one after the other.
        offsets: *Shape:* ``[n + 1]``, int64; rising, from 0 to ``total``.
    """

    values: NDArray[Any]
    offsets: NDArray[np.int64]

    def __post_init__(self) -> None:
        ends = self.offsets
        if (
            len(ends) == 0
            or ends[0] != 0
            or ends[-1] != len(self.values)
            or (ends[1:] < ends[:-1]).any()
        ):
            message = f"Ragged: offsets must rise from 0 to {len(self.values)}, but are {ends!r}."
            raise ValueError(message)

    @classmethod
    def from_lists(cls, rows: Sequence[Sequence[int]]) -> "Ragged":
        """Packs lists of ids; the ids are walked once, in C."""
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        offsets = offsets_of(lengths)
        flat = chain.from_iterable(rows)
        return cls(np.fromiter(flat, dtype=np.int32, count=int(offsets[-1])), offsets)

    @classmethod
    def concatenate(cls, parts: Iterable["Ragged"]) -> "Ragged":
        kept = [*parts] or [cls.from_lists([])]
        if len(kept) == 1:
            return kept[0]
        lengths = np.concatenate([part.lengths for part in kept])
        return cls(np.concatenate([part.values for part in kept]), offsets_of(lengths))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, index: int) -> NDArray[Any]:
        """Row ``index`` as a view of ``values``."""
        count = len(self)
        if not -count <= index < count:
            raise IndexError(f"row {index} of {count}")
        index %= count
        return self.values[self.offsets[index] : self.offsets[index + 1]]

    def __iter__(self) -> Iterator[NDArray[Any]]:
        return (self[i] for i in range(len(self)))

    @override
    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Ragged):
            return NotImplemented
        return np.array_equal(self.offsets, other.offsets) and np.array_equal(
            self.values, other.values
        )

    __hash__ = None  # type: ignore[assignment]  # equal by content, and arrays can change

    @property
    def lengths(self) -> NDArray[np.int64]:
        """*Shape:* ``[n]``; the number of ids in each row."""
        return self.offsets[1:] - self.offsets[:-1]

    def take(self, indices: ArrayLike) -> "Ragged":
        rows = np.asarray(indices, dtype=np.int64)
        starts, lengths = self.bounds(rows)
        offsets = offsets_of(lengths)
        shift = np.repeat(starts - offsets[:-1], lengths)
        return Ragged(self.values[np.arange(offsets[-1]) + shift], offsets)

    def bounds(self, indices: ArrayLike) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Where those rows begin in ``values``, and their lengths; looks at no other row."""
        rows = np.asarray(indices, dtype=np.int64)
        starts = self.offsets[:-1][rows]
        return starts, self.offsets[1:][rows] - starts

    def padded(self, indices: ArrayLike, pad: int) -> NDArray[np.int64]:
        """Rows filled with ``pad`` on the right. *Shape:* ``[len(indices), longest]``, int64."""
        starts, lengths = self.bounds(indices)
        if len(starts) == 1:
            start, length = int(starts[0]), int(lengths[0])
            return self.values[None, start : start + length].astype(np.int64)
        columns = np.arange(int(lengths.max(initial=0)))
        if not len(columns):
            return np.empty((len(lengths), 0), dtype=np.int64)
        # A rectangle of neighbours is cheaper than picking the ids alone: rows are of like length.
        out = self.values.take(starts[:, None] + columns, mode="clip").astype(np.int64)
        out[columns >= lengths[:, None]] = pad
        return out

    def wrapped(self, before: Sequence[int], after: Sequence[int]) -> "Ragged":
        """Every row with ids put before and after it."""
        lengths = self.lengths + len(before) + len(after)
        offsets = offsets_of(lengths)
        out = np.empty(int(offsets[-1]), dtype=np.int32)
        for i, token in enumerate(before):
            out[offsets[:-1] + i] = token
        for i, token in enumerate(after):
            out[offsets[1:] - len(after) + i] = token
        inner = np.repeat(offsets[:-1] - self.offsets[:-1] + len(before), self.lengths)
        out[np.arange(len(self.values)) + inner] = self.values
        return Ragged(out, offsets)

    def clipped(self, longest: int) -> "Ragged":
        """Rows of more than ``longest`` ids cut to it, each keeping its last id (eos)."""
        if longest < 1:
            raise ValueError(f"Ragged.clipped: a row keeps at least 1 id, but longest={longest}.")
        lengths = self.lengths
        over = lengths > longest
        if not over.any():
            return self
        position = np.arange(len(self.values)) - np.repeat(self.offsets[:-1], lengths)
        cut = self.values[position < longest]
        offsets = offsets_of(np.minimum(lengths, longest))
        cut[offsets[1:][over] - 1] = self.values[self.offsets[1:][over] - 1]
        return Ragged(cut, offsets)


def offsets_of(lengths: Sequence[int] | NDArray[np.int64]) -> NDArray[np.int64]:
    """Where rows of these lengths begin, one after the other, and where the last ends."""
    out = np.zeros(len(lengths) + 1, dtype=np.int64)
    np.cumsum(lengths, out=out[1:])
    return out
