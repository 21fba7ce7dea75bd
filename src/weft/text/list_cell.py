"""A cell that is a list in its file: text to columns of text, a list to those of several values."""

from collections.abc import Iterable
from typing import Any

from typing_extensions import override

__all__ = ["ListCell", "unlisted"]


class ListCell(str):
    """A list of texts as the text of them with one space between two; ``parts`` has them.

    Rows are rows of text, whatever their format, and most columns want no more. One of words, tags,
    labels or numbers takes the parts, so that none is cut where it has a space.

    It equals its text, and so any list of the same text: two lists are the same where their
    ``parts`` are.

    Args:
        parts: The texts.

    Example:
        >>> cell = ListCell(["New York", "Rome"])
        >>> cell, cell.parts
        ('New York Rome', ('New York', 'Rome'))
        >>> cell == "New York Rome", cell == ListCell(["New", "York Rome"])
        (True, True)
    """

    __slots__ = ("parts",)
    parts: tuple[str, ...]

    def __new__(cls, parts: Iterable[str]) -> "ListCell":
        """Joins the parts."""
        listed = tuple(parts)
        made = super().__new__(cls, " ".join(listed))
        made.parts = listed
        return made

    @override
    def __reduce__(self) -> tuple[Any, ...]:
        return ListCell, (self.parts,)


def unlisted(value: Any) -> Any:
    """A cell's parts where it is a list, else the value as it is.

    Example:
        >>> unlisted(ListCell(["a", "b"])), unlisted("a b")
        (['a', 'b'], 'a b')
    """
    return list(value.parts) if isinstance(value, ListCell) else value
