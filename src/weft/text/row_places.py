"""Errors of rows that were read from a file name its line, not the row's number."""

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from weft.errors import DataError

__all__ = ["placed_errors"]

NUMBERED = re.compile(r"Row (\d+)(?:, | (?=has \d))")
"""How an error of one row begins: its number from 0, then what is wrong with it."""


@contextmanager
def placed_errors(rows: Any) -> Iterator[None]:
    """Errors of rows begin with their place, where the rows know it by a method ``place_of``.

    Args:
        rows: All that are counted, from 0; those of no file have no places.

    Raises:
        DataError: That of the block, with the place of its row.

    Example:
        >>> class Rows(list):
        ...     def place_of(self, row):
        ...         return f"sms.tsv:{row + 1}"
        >>> with placed_errors(Rows(["ham", "eggs"])):
        ...     raise DataError("Row 1, column 'label': 'eggs' is no label.")
        Traceback (most recent call last):
        weft.errors.DataError: sms.tsv:2: column 'label': 'eggs' is no label.
    """
    place_of = getattr(rows, "place_of", None)
    try:
        yield
    except DataError as error:
        text = str(error)
        numbered = NUMBERED.match(text)
        place = place_of(int(numbered[1])) if numbered and callable(place_of) else None
        if numbered is None or place is None:
            raise
        raise DataError(f"{place}: {text[numbered.end() :]}") from error
