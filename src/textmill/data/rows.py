"""Rows as dicts: over one list a column in memory, or read when they are asked for."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.text.cells import ListCell

NEAR = 4096
"""Rows that are read at once when they are asked for one after the other."""


class Rows(Sequence[dict[str, str]]):
    """Rows as dicts over one list a column: a dict is made when its row is asked for.

    Args:
        columns: Name to values, all of one length.
        place_of: Where a row is in its file, as ``sms.tsv:3``, by its number.
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
        """The file and line of a row; None if they are unknown."""
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


class StoredRows(Sequence[dict[str, str]]):
    """Rows that are not in memory: each is read from record batches of Arrow when it is asked for.

    Args:
        names: Of the columns, which are the first of each batch. If a batch has more, there is one
            for each, of what the cell's list has, or null if the cell is none.
        batches: Mapped from files.
        numbers: Which of their rows these are, rising; None: all.
        num_bytes: Of the files that the batches were made of.
        place_of: The file, and the line in it, of a row by its number in the batches.
    """

    def __init__(
        self,
        names: Sequence[str],
        batches: Sequence[Any],
        *,
        num_bytes: int,
        place_of: Callable[[int], str],
        numbers: NDArray[np.int64] | None = None,
    ) -> None:
        self.names, self.num_bytes = tuple(names), num_bytes
        self._batches, self._place_of, self._numbers = batches, place_of, numbers
        self._ends = np.cumsum([batch.num_rows for batch in batches], dtype=np.int64)
        self._near = 0, Rows({name: [] for name in self.names})

    def chosen(self, numbers: NDArray[np.int64]) -> "StoredRows":
        """Some of all rows, by their numbers, rising."""
        num_bytes = self.num_bytes * len(numbers) // max(len(self), 1)
        how: Any = {"num_bytes": num_bytes, "place_of": self._place_of, "numbers": numbers}
        return StoredRows(self.names, self._batches, **how)

    @override
    def __len__(self) -> int:
        if self._numbers is not None:
            return len(self._numbers)
        return int(self._ends[-1]) if len(self._ends) else 0

    def read(self, start: int, stop: int) -> Rows:
        """The rows from one number up to another, at once."""
        wanted = np.arange(start, stop) if self._numbers is None else self._numbers[start:stop]
        found = {name: list[str]() for name in self.names}
        batch_of = np.searchsorted(self._ends, wanted, side="right")
        for number in np.unique(batch_of).tolist():
            batch = self._batches[number]
            inside = wanted[batch_of == number] - (self._ends[number] - batch.num_rows)
            first, count = int(inside[0]), len(inside)
            is_run = inside[-1] - first + 1 == count
            part = batch.slice(first, count) if is_run else batch.take(inside)
            columns = [column.to_pylist() for column in part.columns]  # to_numpy imports pandas
            for at, cells in enumerate(found.values()):
                texts = columns[at]
                if len(columns) > len(found):
                    lists = zip(texts, columns[at + len(found)], strict=True)
                    texts = [text if inner is None else ListCell(inner) for text, inner in lists]
                cells.extend(texts)
        return Rows(found)

    def place_of(self, row: int) -> str:
        """The file, and a row's line in it."""
        return self._place_of(row if self._numbers is None else int(self._numbers[row]))

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
            rows = [self[i] for i in range(start, stop, step)]
            return Rows({name: [row[name] for row in rows] for name in self.names})
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
