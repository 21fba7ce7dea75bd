"""A seeded stream of choices that is the same on every machine and Python version.

``random.Random`` promises this for ``random()`` only, not for ``choice`` or ``shuffle``.
"""

from collections.abc import MutableSequence, Sequence
from typing import TypeVar

T = TypeVar("T")

_MASK = 2**64 - 1


class Draws:
    """SplitMix64 (Steele, Lea and Flood, 2014) with the four draws a grammar needs.

    >>> draws = Draws(0)
    >>> [draws.below(10) for _ in range(8)]
    [8, 4, 0, 9, 1, 3, 1, 7]
    """

    def __init__(self, seed: int) -> None:
        self._state = seed & _MASK

    def _next(self) -> int:
        self._state = (self._state + 0x9E3779B97F4A7C15) & _MASK
        z = self._state
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & _MASK
        return z ^ (z >> 31)

    def below(self, n: int) -> int:
        """An integer of ``0 .. n - 1``; `n` far under 2**64, so the bias is far under 1e-15."""
        return (self._next() * n) >> 64

    def one(self, items: Sequence[T]) -> T:
        """One of `items`, all equally likely."""
        return items[self.below(len(items))]

    def chance(self, percent: int) -> bool:
        """True in `percent` of 100 draws."""
        return self.below(100) < percent

    def shuffle(self, items: MutableSequence[T]) -> None:
        """Puts `items` in a random order, in place (Fisher and Yates)."""
        for i in range(len(items) - 1, 0, -1):
            j = self.below(i + 1)
            items[i], items[j] = items[j], items[i]
