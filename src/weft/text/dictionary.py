"""Dictionaries: what is known of words from outside the training data, such as lists of names."""

from abc import ABC, abstractmethod
from collections.abc import Iterable
from typing import Any, NamedTuple

from weft.errors import UserError

__all__ = ["Dictionary", "Finding"]

MOST_KINDS = 1 << 20
"""Kinds that a dictionary may have: their vectors take 64 MB. Batches hold a kind's number in a
float32, which is exact up to 16 times as many."""


class Finding(NamedTuple):
    """That a word is of a kind."""

    place: int
    """The word, from 0."""
    kind: int
    """The kind's number, from 1: 0 is padding."""
    weight: float
    """How sure it is, or how much it counts."""


class Dictionary(ABC):
    """Finds the kinds of a text's words.

    Args:
        kinds: Their names, in the order of their numbers.
        column: The column of the rows that it reads.

    Raises:
        UserError: There is no kind, one is there twice, or there are too many.
    """

    def __init__(self, kinds: Iterable[str], *, column: str) -> None:
        self.kinds, self.column = tuple(kinds), column
        self.numbers = {name: 1 + i for i, name in enumerate(self.kinds)}
        """The number of each kind."""
        if not 0 < len(self.kinds) <= MOST_KINDS:
            raise UserError(
                f"A dictionary must have from 1 to {MOST_KINDS:,} kinds, but has {len(self.kinds)}."
            )
        if len(self.numbers) < len(self.kinds):
            twice = next(n for i, n in enumerate(self.kinds) if self.numbers[n] != 1 + i)
            raise UserError(f"The kinds of a dictionary must differ, but {twice!r} is there twice.")

    @property
    def size(self) -> int:
        """Numbers of kinds, with that of padding."""
        return 1 + len(self.kinds)

    @abstractmethod
    def find(self, value: Any, row: int) -> list[Finding]:
        """What is known of the words of one cell, in the order of the words.

        Raises:
            DataError: The value cannot be used; names its row and the column.
        """
