"""Running heads, footers and page numbers: what the margins of several pages have in common."""

import re
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Sequence
from itertools import chain
from math import inf
from statistics import median

from textmill.pipelines.documents.document import Line

ROWS = 3
"""From the top and the bottom of a page, in which a running head can be."""
SAME_HEIGHT = 3.0
"""Points: by how much its height differs from page to page."""
SAME_ROW = 1.0
"""Points by which heights in one row of a page differ."""
LETTERS = 3
"""That a running head has; what has fewer must count the pages."""
NUMBER = re.compile(
    r"\W*+(?:(?:page|seite|p\.)\W*+)?(\d{1,5})(?:\s*(?:/|of|von|de)\s*\d{1,5})?\W*", re.IGNORECASE
)


def without_running_heads(pages: Sequence[Sequence[Line]]) -> list[Line]:
    """The lines of all pages, without what stands at one height of several and differs in digits.

    Args:
        pages: The lines of each page.

    Example:
        >>> def page(number: int) -> list[Line]:
        ...     head = Line(f"{number} A. Author", number, y=-700)
        ...     return [head, *(Line(f"{number}.{n}", number, y=20 * n - 600) for n in range(9))]
        >>> [line.text for line in without_running_heads([page(1), page(2)])][:2]
        ['1.0', '1.1']
    """
    margins = [_margins(lines) for lines in pages]
    numbered = _numbered(margins)
    dropped = _repeated(margins) | numbered | _beside(numbered, margins)
    return [line for lines in pages for line in lines if line not in dropped]


def _margins(lines: Sequence[Line]) -> list[Line]:
    """The lines at the top and the bottom of a page, those of the outermost row first."""
    heights = sorted({round(line.y) for line in lines})
    ranks = {y: min(n, len(heights) - 1 - n) for n, y in enumerate(heights)}
    found = [line for line in lines if ranks[round(line.y)] < ROWS]
    return sorted(found, key=lambda line: ranks[round(line.y)])


def _repeated(margins: Sequence[Sequence[Line]]) -> set[Line]:
    """What is the same on two pages but for its digits."""
    groups = defaultdict[str, list[Line]](list)
    for line in chain(*margins):
        key = re.sub(r"\d+", "#", line.text.casefold())
        if sum(map(str.isalpha, key)) >= LETTERS:
            groups[key].append(line)
    found = set[Line]()
    for group in groups.values():
        lines = sorted(group, key=lambda line: line.y)
        heights = [line.y for line in lines]
        start = 0
        while start < len(lines):  # tops and bottoms, left and right pages
            stop = bisect_right(heights, heights[start] + SAME_HEIGHT)
            height = median(heights[start:stop])
            first = bisect_left(heights, height - SAME_HEIGHT)
            same = lines[first : bisect_right(heights, height + SAME_HEIGHT)]
            if len({line.page for line in same}) > 1:
                found.update(same)
            start = stop
    return found


def _numbered(margins: Sequence[Sequence[Line]]) -> set[Line]:
    """What is the number of its page, alone or beside a title that changes."""
    alone, beside = list[tuple[int, Line]](), list[tuple[int, Line]]()
    for lines in margins:
        for place, line in enumerate(lines):
            if match := NUMBER.fullmatch(line.text):
                alone.append((int(match[1]) - line.page, line))
            elif place < 2 and (ends := _end_numbers(line.text)):
                beside += [(number - line.page, line) for number in ends]
    pages = {line.page for line in chain(*margins)}
    if len(pages) == 1 and alone:
        line = alone[0][1]
        return {line} if line.y == max(other.y for other in chain(*margins)) else set()
    found = set[Line]()
    for each in (alone, beside):
        for first, count in Counter(first for first, _ in each).most_common(2):
            lines_of = [line for number, line in each if number == first]
            wanted = 2 if each is alone else max(3, len(pages) // 3)
            if count >= wanted and len({line.page for line in lines_of}) >= wanted:
                found.update(lines_of)
    return found


def _beside(numbered: set[Line], margins: Sequence[Sequence[Line]]) -> set[Line]:
    """What stands in one row with the number of its page: a title that no other page has."""
    heights = {line.page: line.y for line in numbered}
    return {
        line for line in chain(*margins) if abs(line.y - heights.get(line.page, inf)) <= SAME_ROW
    }


def _end_numbers(text: str) -> list[int]:
    words = re.findall(r"\w+", text)
    return [int(word) for word in {*words[:1], *words[-1:]} if re.fullmatch(r"\d{1,5}", word)]
