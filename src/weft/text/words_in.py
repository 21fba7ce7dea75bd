"""The words of one cell: a text split at white space, or a list of words."""

from collections.abc import Sequence
from typing import Any

from weft.errors import DataError
from weft.text.list_cell import unlisted

__all__ = ["words_in"]


def words_in(value: Any, column: str, row: int) -> list[str]:
    """The words of one cell.

    Args:
        value: Text, or a list of words, also as a cell of a file.
        column: Name of the column, for the error.
        row: Number of the row, for the error.

    Raises:
        DataError: The value is neither, or a word of the list is empty or has white space in it.

    Example:
        >>> words_in("wake me  up", "words", 0), words_in(["wake", "me"], "words", 1)
        (['wake', 'me', 'up'], ['wake', 'me'])
    """
    value = unlisted(value)
    if isinstance(value, str):
        return value.split()
    if not isinstance(value, Sequence) or isinstance(value, bytes):
        raise DataError(
            f"Row {row}, column '{column}': wanted text or a list of words, "
            f"found {type(value).__name__}."
        )
    for place, word in enumerate(value):
        if not isinstance(word, str) or word.split() != [word]:
            raise DataError(
                f"Row {row}, column '{column}': wanted a list of words without white space, found "
                f"{word!r:.80} at {place}."
            )
    return list(value)
