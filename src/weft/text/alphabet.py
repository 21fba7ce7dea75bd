"""The characters of texts, counted."""

from collections.abc import Iterable

import numpy as np

__all__ = ["covering"]


def covering(texts: Iterable[str], coverage: float, min_count: int = 1) -> list[str]:
    """The most frequent characters that make up that share of the texts, most frequent first.

    Of equally frequent ones the lower code point is first, so the order is always the same.

    >>> covering(["abca", "ab"], 0.9)
    ['a', 'b', 'c']
    >>> covering(["abca", "ab"], 0.8)
    ['a', 'b']
    """
    counts = np.zeros(0x110000, dtype=np.int64)
    for text in _joined(texts):
        points = np.frombuffer(text.encode("utf-32-le"), dtype=np.uint32)
        found, times = np.unique(points, return_counts=True)
        counts[found] += times
    order = np.argsort(-counts, kind="stable")
    order = order[counts[order] >= max(min_count, 1)]
    before = np.cumsum(counts[order]) - counts[order]
    return [chr(i) for i in order[before < coverage * counts.sum()]]


def _joined(texts: Iterable[str]) -> Iterable[str]:
    """Texts put together by a million characters: counting each alone would take its own sort."""
    parts: list[str] = []
    size = 0
    for text in texts:
        parts.append(text)
        size += len(text)
        if size >= 1 << 20:
            yield "".join(parts)
            parts, size = [], 0
    yield "".join(parts)
