"""Rows as dicts over one list a column."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import overload

from typing_extensions import override

__all__ = ["Rows"]


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
        """The columns' names."""
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
