"""Numbers of lines in a margin, as manuscripts under review have them."""

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from textmill.pipelines.documents.placed_word import PlacedWord

FEWEST = 4
STEPS = {1, 2, 5, 10}
SHARE = 0.9
"""Of the numbers, those that follow on the one above by the step."""
EACH_LINE = 0.6
"""Share of the lines that have a number where each is to; of references, fewer have labels."""
SMALLER, FAR = 0.5, 10.0
"""Points by which they are smaller than the text, or else away from it; a label is neither."""


def without_line_numbers(words: Sequence[PlacedWord]) -> list[PlacedWord]:
    """The words of a page without numbers that count its lines, left or right of all others.

    Example:
        >>> text = [PlacedWord("text", 72, 99, 12 * n, 10) for n in range(1, 11)]
        >>> numbers = [PlacedWord(str(n), 50, 55, 12 * n, 6) for n in range(1, 11)]
        >>> without_line_numbers([*text, *numbers]) == text
        True
    """
    numbers = [word for word in words if re.fullmatch(r"\d{1,5}", word.text)]
    others = [word for word in words if not re.fullmatch(r"\d{1,5}", word.text)]
    if len(numbers) < FEWEST or not others:
        return list(words)
    left, right = min(word.x0 for word in others), max(word.x1 for word in others)
    size = Counter(word.size for word in others).most_common(1)[0][0]
    rows = len({round(word.y) for word in others})
    dropped = set[PlacedWord]()
    for side in (
        [word for word in numbers if word.x1 < left],
        [word for word in numbers if word.x0 > right],
    ):
        away = [max(left - word.x1, word.x0 - right) for word in side]
        told_apart = all(word.size <= size - SMALLER for word in side) or min(away, default=0) > FAR
        if told_apart and _counts_lines(side, rows):
            dropped.update(side)
    return [word for word in words if word not in dropped]


def _counts_lines(side: Sequence[PlacedWord], rows: int) -> bool:
    values = [int(word.text) for word in sorted(side, key=lambda word: word.y)]
    if len(values) < FEWEST:
        return False
    step, count = Counter(b - a for a, b in pairwise(values)).most_common(1)[0]
    if step not in STEPS or count < SHARE * (len(values) - 1):
        return False
    return len(values) * step >= EACH_LINE * rows
