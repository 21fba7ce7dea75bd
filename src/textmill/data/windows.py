"""An order of rows that needs no memory: a permutation worked out place by place, in windows.

What is planned at once holds some 60 bytes a row, and sorts them all before step 1. Of more than
`WHOLE_ROWS` rows one window after the other is planned: it is a random part of all rows, wherever
they are, and which ones is a pure function of (seed, epoch, window).
"""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

Places = NDArray[np.int64]

WHOLE_ROWS = 1 << 19
"""Most rows that are planned at once; part of what a seed means, as all here is."""
WINDOW_ROWS = 1 << 18
"""Rows of a window, about: a fifth of a second of planning, and 5,000 batches of 50 rows."""
ROUNDS = 6


def permuted(places: Places, count: int, key: Sequence[int]) -> Places:
    """What a random permutation of ``range(count)`` has at some places, in memory for them alone.

    Each round is a bijection of the numbers of so many bits; a number of no row goes through all
    again until it is one's (about once in two).

    Args:
        places: Each from 0, below ``count``.
        count: How many there are in all.
        key: Numbers from 0; another key, another permutation.

    Example:
        >>> permuted(np.arange(10), 10, [1, 2]).tolist()
        [4, 5, 2, 8, 6, 1, 3, 9, 0, 7]
        >>> permuted(np.array([7, 0]), 10, [1, 2]).tolist()
        [9, 4]
    """
    bits = max(4, (count - 1).bit_length())
    mask, shift = np.uint64((1 << bits) - 1), np.uint64((bits + 1) // 2)
    # Of a seed sequence numpy promises the same words in all versions, of a generator it does not.
    words = np.random.SeedSequence([*key]).generate_state(2 * ROUNDS, np.uint64)

    def mixed(numbers: NDArray[np.uint64]) -> NDArray[np.uint64]:
        for factor, term in words.reshape(ROUNDS, 2):
            numbers = (numbers * (factor | np.uint64(1)) + term) & mask
            numbers = numbers ^ (numbers >> shift)
        return numbers

    found = mixed(places.astype(np.uint64))
    while len(outside := np.flatnonzero(found >= count)):
        found[outside] = mixed(found[outside])
    return found.astype(np.int64)


def window_of(count: int, batch_size: int | None) -> int:
    """Rows of each window but the last: whole batches, where those have a number of rows.

    >>> window_of(1_000_000, None), window_of(1_000_000, 100), window_of(1000, 100)
    (262144, 262100, 1000)
    """
    if count <= WHOLE_ROWS:
        return max(1, count)
    size = batch_size or 1
    return max(1, WINDOW_ROWS // size) * size
