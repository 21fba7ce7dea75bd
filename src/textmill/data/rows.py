"""Rows as dicts: over one list a column in memory, or read when they are asked for."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

NEAR = 4096
"""Rows that are read at once when they are asked for one after the other."""


class Rows(Sequence[dict[str, str]]):
    """Rows as dicts over one list a column: a dict is made when its row is asked for.

    Args:
        columns: Name to values, all of one length.
        place_of: Where a row is in its file, as ``sms.tsv:3``, by its number.

    Example:
        >>> rows = Rows({"source": ["Hi.", "Run!"], "target": ["Salut.", "Cours !"]})
        >>> len(rows), rows[-1]
        (2, {'source': 'Run!', 'target': 'Cours !'})
        >>> rows[:1].column("target")
        ['Salut.']
    """

    def __init__(
        self, columns: Mapping[str, list[str]], *, place_of: Callable[[int], str] | None = None
    ) -> None:
        assert len(set(map(len, columns.values()))) == 1, "the columns differ in length"
        self._columns, self._place_of = columns, place_of

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._columns)

    def place_of(self, row: int) -> str | None:
        """Where a row is in its file; None where nobody said."""
        return None if self._place_of is None else self._place_of(row)

    def column(self, name: str) -> list[str]:
        """All values of one column, not copied."""
        return self._columns[name]

    @override
    def __len__(self) -> int:
        return len(next(iter(self._columns.values())))

    @overload
    def __getitem__(self, index: int) -> dict[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> "Rows": ...
    @override
    def __getitem__(self, index: int | slice) -> "dict[str, str] | Rows":
        if isinstance(index, slice):
            return Rows({name: values[index] for name, values in self._columns.items()})
        return {name: values[index] for name, values in self._columns.items()}

    @override
    def __iter__(self) -> Iterator[dict[str, str]]:
        names = tuple(self._columns)
        for values in zip(*self._columns.values(), strict=True):
            yield dict(zip(names, values, strict=True))


class StoredRows(Sequence[dict[str, str]], ABC):
    """Rows that are not in memory: each is read when it is asked for."""

    def __init__(self, names: Sequence[str], num_bytes: int) -> None:
        self.names, self.num_bytes = tuple(names), num_bytes
        self._near = (0, self.rows_of([]))

    @abstractmethod
    def read(self, start: int, stop: int) -> Rows:
        """The rows from one number up to another, at once."""

    @abstractmethod
    def place_of(self, row: int) -> str:
        """The file, and a row's line in it."""

    def rows_of(self, rows: Sequence[Mapping[str, str]]) -> Rows:
        return Rows({name: [row[name] for row in rows] for name in self.names})

    @overload
    def __getitem__(self, index: int) -> dict[str, str]: ...
    @overload
    def __getitem__(self, index: slice) -> Rows: ...
    @override
    def __getitem__(self, index: int | slice) -> dict[str, str] | Rows:
        if isinstance(index, slice):
            start, stop, step = index.indices(len(self))
            if step == 1:
                return self.read(start, max(start, stop))
            return self.rows_of([self[i] for i in range(start, stop, step)])
        number = index + len(self) if index < 0 else index
        if not 0 <= number < len(self):
            raise IndexError(f"row {index} of {len(self)}")
        first, near = self._near
        if 0 <= number - first < len(near):
            return near[number - first]
        if number == first + len(near):  # one after the other: more of them at once
            self._near = number, self.read(number, min(number + NEAR, len(self)))
            return self._near[1][0]
        return self.read(number, number + 1)[0]

    @override
    def __iter__(self) -> Iterator[dict[str, str]]:
        for first in range(0, len(self), NEAR):
            yield from self.read(first, min(first + NEAR, len(self)))


class ChosenRows(StoredRows):
    """Some of such rows."""

    def __init__(self, rows: StoredRows, numbers: NDArray[np.int64]) -> None:
        self.all, self.numbers = rows, numbers
        super().__init__(rows.names, rows.num_bytes * len(numbers) // max(len(rows), 1))

    @override
    def __len__(self) -> int:
        return len(self.numbers)

    @override
    def read(self, start: int, stop: int) -> Rows:
        found, numbers = list[dict[str, str]](), self.numbers[start:stop]
        for block in np.split(numbers, np.flatnonzero(np.diff(numbers // NEAR)) + 1):
            if len(block):  # one block of rows around them is in memory
                near = self.all.read(int(block[0]), int(block[-1]) + 1)
                found += [near[int(number - block[0])] for number in block]
        return self.rows_of(found)

    @override
    def place_of(self, row: int) -> str:
        return self.all.place_of(int(self.numbers[row]))
