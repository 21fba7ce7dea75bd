"""The values of rows of training data that an ingredient is fitted on."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from weft.errors import DataError

__all__ = ["training_cell", "training_cells"]


def training_cell(
    values: Mapping[str, Any], column: str, row: int, *, purpose: str, remedy: str
) -> Any:
    """The value of a column.

    Args:
        values: The row.
        column: Name of the column.
        row: Number of the row from 0, for the error.
        purpose: What it is read for, behind "has no column 'x'".
        remedy: A sentence that says what to do.

    Raises:
        DataError: The row has no such column.

    Example:
        >>> reading = {"purpose": "to take words from", "remedy": "Name it by tokenizer.columns."}
        >>> training_cell({"text": "wake me up"}, "text", 0, **reading)
        'wake me up'
        >>> training_cell({"text": "wake me up"}, "words", 0, **reading)
        Traceback (most recent call last):
        weft.errors.DataError: Row 0 of train_data has no column 'words' to take words from; \
it has: text. Name it by tokenizer.columns.
    """
    if column not in values:
        has = ", ".join(map(str, values))
        raise DataError(
            f"Row {row} of train_data has no column '{column}' {purpose}; it has: {has}. {remedy}"
        )
    return values[column]


def training_cells(
    rows: Iterable[Mapping[str, Any]], column: str, *, purpose: str, remedy: str
) -> Iterator[tuple[int, Any]]:
    """The number of each row and its value of a column; as :func:`training_cell`.

    Example:
        >>> reading = {"purpose": "to take words from", "remedy": "Name it by tokenizer.columns."}
        >>> list(training_cells([{"text": "a b"}, {"text": "c"}], "text", **reading))
        [(0, 'a b'), (1, 'c')]
    """
    for row, values in enumerate(rows):
        yield row, training_cell(values, column, row, purpose=purpose, remedy=remedy)
