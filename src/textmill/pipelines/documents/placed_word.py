"""A word where it stands on a page."""

from typing import NamedTuple


class PlacedWord(NamedTuple):
    """Characters without white between them; lengths are in points, y grows downwards.

    Example:
        >>> PlacedWord("Knuth", x0=72, x1=99.5, y=120, size=10).bold
        False
    """

    text: str
    x0: float
    x1: float
    y: float
    """Of its baseline."""
    size: float
    bold: bool = False
    space: bool = True
    """Whether white is written before it."""
