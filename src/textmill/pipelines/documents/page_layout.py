"""Words of a page to lines in reading order, without the numbers and heads of its margins."""

import itertools
import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import chain, pairwise
from statistics import median
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from textmill.pipelines.documents.document import Line


class PlacedWord(NamedTuple):
    """Characters without white between them; lengths are in points, y grows downwards."""

    text: str
    x0: float
    x1: float
    y: float
    """Of its baseline."""
    size: float
    bold: bool = False
    space: bool = True
    """Whether white is written before it."""


FEWEST = 4
STEPS = {1, 2, 5, 10}
SHARE = 0.9
"""Of the numbers, those that follow on the one above by the step."""
EACH_LINE = 0.6
"""Share of the lines that have a number where each is to; of references, fewer have labels."""
SMALLER, FAR = 0.5, 10.0
"""Points by which they are smaller than the text, or else away from it; a label is neither."""


def without_line_numbers(words: Sequence[PlacedWord]) -> list[PlacedWord]:
    """The words of a page without numbers that count its lines, left or right of all others."""
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


BIN = 2.0
"""Points: how finely white is looked for."""
MOST_CELLS = 1 << 22
"""Rows times bins in which columns are looked for; a page of small print has 30,000."""
SAME_ROW = 0.5
"""Of the size: by how much baselines of one row differ; a superscript is raised by 0.4."""
RAISED = 0.15
"""Of the size: what is raised by more is a superscript."""
GUTTER = 3
"""Bins without a word, at least: 6 points; between words of justified lines are 2 to 5."""
NARROWEST = 0.18
"""Of the width of the text: a column has as much, a label of a list or a line number less."""
FEWEST_ROWS, MANY_ROWS = 3, 8
"""Rows that columns have at least: each of three where they have eight, or half of the page, in
all; beside one of eight, the last may have a single one."""
DEEPEST = 4
"""Columns within columns, and bands of a page with other columns."""
LONGEST = 8.0
"""Of the size: a longer word, as an address, may run into the gutter."""
WORD_SPACE = 0.2
"""Of the size: what is farther apart are two words, whatever is written between them."""


@dataclass
class _Row:
    """Words of about one baseline, that of the largest."""

    y: float
    size: float
    words: list[PlacedWord] = field(default_factory=list)


def page_lines(words: Sequence[PlacedWord], page: int) -> list[Line]:
    """The lines of a page in reading order: column by column between what runs over all of them."""
    written = [word for word in words if word.x1 > word.x0 and word.size > 0]
    columns = list(_columns(without_line_numbers(written), 0))
    return [
        line
        for number, rows in enumerate(columns)
        for line in _lines(rows, page=page, column=number)
    ]


def _rows(words: Sequence[PlacedWord]) -> list[_Row]:
    """Words by their baselines, from the top; what is large has a row begin, what is small joins.

    A superscript joins the row of the words beside it.
    """
    rows = list[_Row]()
    for word in sorted(words, key=lambda word: word.y):
        if not rows or word.y - rows[-1].y > SAME_ROW * max(word.size, rows[-1].size):
            rows.append(_Row(word.y, word.size))
        elif word.size > rows[-1].size:
            rows[-1].y, rows[-1].size = word.y, word.size
        rows[-1].words.append(word)
    return rows


def _columns(words: list[PlacedWord], depth: int) -> Iterator[list[_Row]]:
    rows = _rows(words)
    gutter = _gutter(rows) if depth < DEEPEST and len(rows) >= FEWEST_ROWS else None
    if gutter is None:
        if rows:
            yield rows
        return
    at, bands = gutter
    for is_split, start, stop in bands:
        inside = [word for row in rows[start:stop] for word in row.words]
        if is_split:
            yield from _columns([word for word in inside if word.x0 < at], depth + 1)
            yield from _columns([word for word in inside if word.x0 >= at], depth + 1)
        else:
            yield from _columns(inside, depth + 1)


Bands = list[tuple[bool, int, int]]
"""Runs of rows that a gutter divides, or does not: whether, first row, row after the last."""


def _gutter(rows: Sequence[_Row]) -> tuple[float, Bands] | None:
    """Where white divides most rows in two columns, and the rows it divides; None without one."""
    words = [word for row in rows for word in row.words]
    low, high = min(word.x0 for word in words), max(word.x1 for word in words)
    bins = int((high - low) / BIN) + 1
    if not 8 * GUTTER <= bins <= min(10_000, MOST_CELLS // len(rows)):
        return None
    taken = np.zeros((len(rows), bins), bool)
    for number, row in enumerate(rows):
        for word in row.words:
            end = min(word.x1, word.x0 + LONGEST * word.size)
            taken[number, int((word.x0 - low) / BIN) : int((end - low) / BIN) + 1] = True
    left = np.logical_or.accumulate(taken, 1)
    right = np.logical_or.accumulate(taken[:, ::-1], 1)[:, ::-1]
    wide = np.asarray(np.lib.stride_tricks.sliding_window_view(taken, GUTTER, 1).any(2), bool)
    margin = int(NARROWEST * bins)
    best: tuple[int, list[int]] = (0, [])
    for at in np.flatnonzero((~wide).sum(0) >= FEWEST_ROWS).tolist():
        if margin <= at < bins - margin - GUTTER:
            count = _divided(~wide[:, at], left[:, at], right[:, at + GUTTER])
            if count > best[0]:
                best = (count, [at])
            elif count and count == best[0]:
                best[1].append(at)
    if not best[0]:
        return None
    middle = best[1][len(best[1]) // 2]
    bands = _bands(~wide[:, middle], left[:, middle], right[:, middle + GUTTER])
    return low + (middle + GUTTER / 2) * BIN, bands


def _runs(white: NDArray[np.bool_]) -> list[tuple[bool, int, int]]:
    edges = [0, *(np.flatnonzero(np.diff(white)) + 1).tolist(), len(white)]
    return [(bool(white[a]), a, b) for a, b in itertools.pairwise(edges)]


def _is_divided(left: NDArray[np.bool_], right: NDArray[np.bool_], rows: int) -> bool:
    fewer, more = sorted((int(left.sum()), int(right.sum())))
    is_tall = len(left) >= min(MANY_ROWS, rows / 2)
    return (fewer >= FEWEST_ROWS and is_tall) or (fewer > 0 and more >= MANY_ROWS)


def _divided(white: NDArray[np.bool_], left: NDArray[np.bool_], right: NDArray[np.bool_]) -> int:
    """How many rows stand in runs with text on both sides."""
    return sum(
        stop - start
        for is_white, start, stop in _runs(white)
        if is_white and _is_divided(left[start:stop], right[start:stop], len(white))
    )


def _bands(white: NDArray[np.bool_], left: NDArray[np.bool_], right: NDArray[np.bool_]) -> Bands:
    found: Bands = []
    for is_white, start, stop in _runs(white):
        split = is_white and _is_divided(left[start:stop], right[start:stop], len(white))
        if found and not split and not found[-1][0]:
            found[-1] = (False, found[-1][1], stop)
        else:
            found.append((split, start, stop))
    return found


def _lines(rows: Sequence[_Row], *, page: int, column: int) -> Iterator[Line]:
    words = [word for row in rows for word in row.words]
    left, right = min(word.x0 for word in words), max(word.x1 for word in words)
    for row in rows:
        row.words.sort(key=lambda word: word.x0)
        sizes, bold = Counter[float](), Counter[bool]()
        for word in row.words:
            sizes[word.size] += len(word.text)
            bold[word.bold] += len(word.text)
        size = sizes.most_common(1)[0][0]
        y = Counter(word.y for word in row.words if word.size == size).most_common(1)[0][0]
        first = row.words[0]
        text = _text(row.words, size)
        if text:
            yield Line(
                text=text,
                page=page,
                x0=first.x0,
                x1=max(word.x1 for word in row.words),
                y=y,
                size=size,
                bold=bold.most_common(1)[0][0],
                column=column,
                left=left,
                right=right,
                second=row.words[1].x0 if len(row.words) > 1 else first.x0,
                raised=first.size < size and first.y < y - RAISED * size,
            )


def _text(words: Sequence[PlacedWord], size: float) -> str:
    parts = list[str]()
    last: PlacedWord | None = None
    for word in words:
        if last is not None and (
            word.space
            or word.x0 - last.x1 > WORD_SPACE * size
            or (last is words[0] and last.size < word.size)  # a raised label, a drop of a list
        ):
            parts.append(" ")
        parts.append(word.text)
        last = word
    return written("".join(parts))


LIGATURES = {code: unicodedata.normalize("NFKC", chr(code)) for code in range(0xFB00, 0xFB07)}
PLAIN = {
    **LIGATURES,
    **dict.fromkeys(
        (0xA0, 0x2002, 0x2003, 0x2004, 0x2005, 0x2006, 0x2007, 0x2009, 0x200A, 0x202F), " "
    ),
    **dict.fromkeys((0x2010, 0x2011), "-"),
    **dict.fromkeys((0x200B, 0x200C, 0x200D, 0xFEFF), ""),
    **dict.fromkeys((0x2028, 0x2029, 0x85), " "),
}
"""What is the same character to whoever reads; no superscript becomes a digit."""
TEX_DASH = re.compile(r"(?<=\d)\{(?=\d|$)")
"""A dash between numbers, as it is in TeX's first fonts where they do not say what it is."""


def written(text: str) -> str:
    r"""Text as one types it: ligatures as letters, one space between words.

    A soft hyphen stays only at the end, where it says that a word goes on.
    """
    text = " ".join(text.translate(PLAIN).split())
    text = text.replace("\u00ad", "") + "\u00ad" * text.endswith("\u00ad")
    text = TEX_DASH.sub("–", text)
    if not text.isascii():
        text = unicodedata.normalize("NFC", text)
    return text


ROWS = 3
"""From the top and the bottom of a page, in which a running head can be."""
SAME_HEIGHT = 3.0
"""Points: by how much its height differs from page to page."""
HEAD_ROW = 1.0
"""Points by which heights in one row of a page differ."""
LETTERS = 3
"""That a running head has; what has fewer must count the pages."""
NUMBER = re.compile(
    r"\W*+(?:(?:page|seite|p\.)\W*+)?(\d{1,5})(?:\s*(?:/|of|von|de)\s*\d{1,5})?\W*", re.IGNORECASE
)


def without_running_heads(pages: Sequence[Sequence[Line]]) -> list[Line]:
    """The lines of all pages, without running heads: at one height, the same but for digits."""
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
    """Lines that are the same on two pages but for their digits."""
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
    """Lines with the number of their page, alone or beside a title that changes."""
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
    """Lines in one row with the number of their page: titles that no other page has."""
    heights = defaultdict[int, list[float]](list)
    for line in numbered:
        heights[line.page].append(line.y)
    return {
        line
        for line in chain(*margins)
        if any(abs(line.y - y) <= HEAD_ROW for y in heights[line.page])
    }


def _end_numbers(text: str) -> list[int]:
    """The numbers that begin and end a line, in this order: of equal ones the first is taken."""
    words = re.findall(r"\w+", text)
    ends = dict.fromkeys([*words[:1], *words[-1:]])
    return [int(word) for word in ends if re.fullmatch(r"\d{1,5}", word)]
