"""The process that reads a PDF within limits: its lines and its parts, as lines of JSON.

PDFium is C++ and what it reads may come from anyone: here a crash, an endless loop or all memory
taken ends this process alone. So does whatever layout would make a search for columns, references
or the body slow. The file is the standard input; what was found is the standard output.
"""

import contextlib
import ctypes
import json
import math
import mmap
import signal
import sys
import unicodedata
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any, NamedTuple

from textmill.pipelines.documents.document import Document, Line, Passage
from textmill.pipelines.documents.page_layout import PlacedWord, page_lines, without_running_heads
from textmill.pipelines.documents.pdf import LOCKED
from textmill.pipelines.documents.sections import find_parts

HYPHEN = 2
"""What PDFium gives for a hyphen that ends a line."""
SAME_LINE = 0.1
"""Of the size: by how much characters of one word differ in height."""
FAR = 2.0
"""Of the size: a jump within a word that no writing has."""
ACCENTS = {code: chr(code) for code in range(0x300, 0x332)} | {
    0xB4: "\u0301", 0x60: "\u0300", 0xA8: "\u0308", 0x7F: "\u0308", 0x2C6: "\u0302",
    0x2DC: "\u0303", 0xB8: "\u0327", 0x2C7: "\u030c", 0x2DA: "\u030a", 0xAF: "\u0304",
    0x2D8: "\u0306", 0x2D9: "\u0307", 0x2DD: "\u030b",
}  # fmt: skip
"""Accents as characters of their own, as TeX's first fonts have them, and what a letter has."""
TEX = {
    **{code: 0xFB00 + code - 0x0B for code in range(0x0B, 0x10)},
    **{code: 0xFB00 + code - 0x1B for code in range(0x1B, 0x20)},
    0x15: ord("–"), 0x16: ord("—"),
}  # fmt: skip
"""Ligatures and dashes of TeX's encodings OT1 and T1, where a font does not say what they are."""
PLAIN_I = {0x131: 0x69, 0x237: 0x6A}
"""Letters that have their dot only without an accent."""
DRAWN_OVER = 0
"""In place of an accent that its letter has."""
ROW = 6.0
"""Points: rows of letters that are looked at for an accent, beside the two nearest."""
RAISED = 0.5
"""Of its height: by how much an accent is drawn higher than its letter, at most."""
ASCENDER, MOST_HIGH = 0.7, 3.0
"""Of the size: how high letters are drawn, and how high no font says that they are. TeX's fonts of
pictures (Type 3) say 0.24 points; nine words of ten are no higher than those with an ascender."""
BOLD = ("bold", "black", "heavy", "demi", "cmbx", "medi")
"""What names of bold fonts have; ``medi`` is the bold of Nimbus, as LaTeX embeds it."""

LOADING = {
    2: "cannot be opened",
    3: "is no PDF, or a damaged one",
    4: "is encrypted, and its password is another",
    5: "is encrypted in a way that is not known",
}
"""What ``FPDF_GetLastError`` says."""
SCANNED = (
    "has no text on any of its pages ({:,}): it was scanned, and its text is to be recognized "
    "first, as `ocrmypdf IN.pdf OUT.pdf` does, or is damaged"
)


class _Character(NamedTuple):
    """A character of a page: its UTF-16 unit and place; lengths are in points, y grows upwards."""

    at: int
    code: int
    x: float
    y: float
    """Of its origin, on the baseline."""
    box: tuple[float, float, float, float]
    """Left, bottom, right, top."""


class _Word:
    """Characters that stand together."""

    def __init__(self, first: _Character, space: bool) -> None:
        self.at, self.x, self.y, self.space = first.at, first.x, first.y, space
        self.codes = list[int]()
        self.left, self.bottom, self.right, self.top = first.box

    def takes(self, other: _Character) -> bool:
        """Whether a character belongs to it, and if so has it.

        It stands beside the others, whichever way the text runs.
        """
        left, bottom, right, top = other.box
        height, width = self.top - self.bottom, self.right - self.left
        level = abs(other.y - self.y) <= SAME_LINE * height
        upright = abs(other.x - self.x) <= SAME_LINE * width
        jumps = level and not self.left - FAR * height <= left <= self.right + FAR * height
        if jumps or not (level or upright):
            return False
        self.left, self.right = min(self.left, left), max(self.right, right)
        self.bottom, self.top = min(self.bottom, bottom), max(self.top, top)
        return True


def _page_characters(raw: Any, text: Any, count: int) -> list[_Character]:
    rect, x, y = raw.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    pointer = ctypes.byref(rect)
    unicode_of, box_of, origin_of = (
        raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox, raw.FPDFText_GetCharOrigin,
    )  # fmt: skip
    found = list[_Character]()
    for at in range(count):
        code = unicode_of(text, at)
        box_of(text, at, pointer)
        origin_of(text, at, x, y)
        if code in TEX and rect.right > rect.left:  # what PDFium adds has no width
            code = TEX[code]
        box = (rect.left, rect.bottom, rect.right, rect.top)
        found.append(_Character(at, code, x.value, y.value, box))
    return found


def _words(characters: Sequence[_Character]) -> Iterator[_Word]:
    """Words, with each accent that was drawn over a letter in that letter."""
    composed = _accented(characters)
    word: _Word | None = None
    space, accent = True, False
    for each in characters:
        if each.code <= 32 and each.code != HYPHEN:
            space = True
            continue
        code = composed.get(each.at, each.code)
        if code == DRAWN_OVER:
            accent = True
            continue
        if space and accent and word is not None:  # PDFium has taken the way back for a space
            space = not abs(each.box[0] - word.right) <= SAME_LINE * (word.top - word.bottom)
        if space or word is None or word.codes[-1] == HYPHEN or not word.takes(each):
            if word is not None:
                yield word
            word = _Word(each, space)
        word.codes.append(code)
        space = accent = False
    if word is not None:
        yield word


def _accented(characters: Sequence[_Character]) -> dict[int, int]:
    """Letters with the accents drawn over them, by place; of these accents, DRAWN_OVER."""
    accents = [each for each in characters if each.code in ACCENTS]
    if not accents:
        return {}
    rows = defaultdict[int, list[tuple[float, int, _Character]]](list)
    for each in characters:
        if chr(min(each.code, 0xFFFF)).isalpha() and math.isfinite(each.y):
            rows[int(each.y / ROW)].append((each.box[0], each.at, each))
    for row in rows.values():
        row.sort()
    found = dict[int, int]()
    for accent in filter(lambda each: math.isfinite(each.y), accents):
        middle = (accent.box[0] + accent.box[2]) / 2
        for row in (rows[int(accent.y / ROW) + way] for way in (0, -1, 1)):
            place = bisect_left(row, (middle,))
            for _, at, letter in row[max(place - 2, 0) : place]:
                near = abs(letter.y - accent.y) <= RAISED * (accent.box[3] - accent.box[1])
                if near and middle <= letter.box[2] and accent.at not in found:
                    base = found.get(at) or PLAIN_I.get(letter.code) or letter.code
                    whole = unicodedata.normalize("NFC", chr(base) + ACCENTS[accent.code])
                    if len(whole) == 1:
                        found[at], found[accent.at] = ord(whole), DRAWN_OVER
    return found


def _characters(codes: list[int]) -> str:
    """Text of UTF-16 units or code points; U+FFFD replaces what is no character."""
    text = "".join("-" if c == HYPHEN else chr(c) if 0 < c < 0x110000 else "\ufffd" for c in codes)
    if text.isascii():
        return text
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


def page_words(raw: Any, page: Any, most: int) -> list[tuple[Any, ...]]:
    """The words of a page: text, beginning, end, baseline, size, is bold, a space is before it.

    Of text that runs several ways, what runs as most of it does: no stamp along a margin. Lengths
    are in points, from the left and from the top of a page held so that this text is level. ``raw``
    is ``pypdfium2.raw``; the page may have ``most`` characters.
    """
    text = raw.FPDFText_LoadPage(page)
    if not text:
        return []
    try:
        if (count := raw.FPDFText_CountChars(text)) > most:
            raise ValueError(f"{count:,} characters on one page are more than the {most:,} allowed")
        matrix = raw.FS_MATRIX()
        name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
        found: list[list[tuple[Any, ...]]] = [[], [], [], []]
        heights = defaultdict[float, list[float]](list)
        for word in _words(_page_characters(raw, text, count)):
            raw.FPDFText_GetMatrix(text, word.at, matrix)
            raw.FPDFText_GetFontInfo(text, word.at, name, 128, flags)
            scale = math.hypot(matrix.c, matrix.d) or 1.0
            size = abs(raw.FPDFText_GetFontSize(text, word.at)) * scale
            turn = round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4
            bold = any(each in name.value.decode("latin-1").lower() for each in BOLD)
            left, bottom, right, top = word.left, word.bottom, word.right, word.top
            heights[size].append(right - left if turn % 2 else top - bottom)
            places = (
                (left, right, -word.y),
                (bottom, top, word.x),
                (-right, -left, word.y),
                (-top, -bottom, -word.x),
            )
            found[turn].append((_characters(word.codes), *places[turn], size, bold, word.space))
    finally:
        raw.FPDFText_ClosePage(text)
    sizes = {size: _letter_size(size, sorted(own)) for size, own in heights.items()}
    words = max(found, key=lambda words: sum(len(word[0]) for word in words))
    return [
        (word, *(_rounded(n) for n in (*places, sizes[size])), bold, space)
        for word, *places, size, bold, space in words
    ]


def _letter_size(size: float, heights: Sequence[float]) -> float:
    """The size of a font by what it says; of letters drawn as pictures, by how high they are."""
    high = heights[9 * len(heights) // 10]
    return high / ASCENDER if high > MOST_HIGH * size else size


def _rounded(length: float) -> float:
    return round(length, 1) if math.isfinite(length) else 0.0


def _limit(memory: int, seconds: int) -> None:
    """Bounds this process where the system can; the one that waits for it bounds its time, too.

    ``memory`` is bytes beside those that the program itself has taken, ``seconds`` of a processor.
    """
    with contextlib.suppress(ImportError, ValueError, OSError):
        import resource

        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds))
        with contextlib.suppress(FileNotFoundError), open("/proc/self/statm") as file:
            memory += int(file.read().split()[0]) * resource.getpagesize()
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))


def _end_with_parent() -> None:
    """Has Linux kill this process when the one that started it ends, however that ends."""
    with contextlib.suppress(OSError, AttributeError, TypeError):
        ctypes.CDLL(None).prctl(1, signal.SIGKILL)  # PR_SET_PDEATHSIG


def _tell(what: str, found: object) -> None:
    sys.stdout.write(json.dumps([what, found], separators=(",", ":")) + "\n")


_places = attrgetter(*(field.name for field in fields(Line)))


def _passage(passage: Passage) -> list[Any]:
    return [passage.text, passage.label, passage.starts]


def _read(
    raw: Any, content: mmap.mmap, limits: Sequence[int], password: bytes | None = None
) -> None:
    most_pages, most_on_page, left, most_lines = limits
    raw.FPDF_InitLibrary()
    buffer = (ctypes.c_char * len(content)).from_buffer(content)
    document = raw.FPDF_LoadMemDocument64(buffer, len(content), password)
    if not document:
        told = LOADING if password is not None else {**LOADING, 4: LOCKED}
        return _tell("error", told.get(raw.FPDF_GetLastError(), "cannot be read"))
    if (count := raw.FPDF_GetPageCount(document)) > most_pages:
        return _tell("error", f"has {count:,} pages, more than the {most_pages:,} allowed")
    pages = list[list[Line]]()
    for number in range(1, count + 1):
        _tell("page", number)
        sys.stdout.flush()
        page = raw.FPDF_LoadPage(document, number - 1)
        try:
            words = page_words(raw, page, min(most_on_page, left)) if page else []
        except ValueError as error:
            return _tell("error", str(error))
        raw.FPDF_ClosePage(page)
        left -= sum(len(word[0]) for word in words)
        pages.append(page_lines([PlacedWord(*word) for word in words], number))
        most_lines -= len(pages[-1])
        if most_lines < 0:
            return _tell("error", f"has more than the {limits[3]:,} lines allowed")
    _tell("page", None)
    sys.stdout.flush()
    if not any(pages):
        return _tell("error", SCANNED.format(count))
    lines = without_running_heads(pages)
    for line in lines:
        _tell("line", _places(line))
    parts = find_parts(Document("", count, lines))
    for passage in parts.references:
        _tell("reference", _passage(passage))
    if parts.abstract is not None:
        _tell("abstract", _passage(parts.abstract))
    _tell("body", _passage(parts.body))
    return _tell("end", count)


if __name__ == "__main__":
    _end_with_parent()
    _memory, _seconds, *_most, _secret = map(int, sys.argv[1:])
    _password = None
    if _secret:  # what reads it, as whoever sees a process sees its arguments
        with open(_secret, "rb") as _file:
            _password = _file.read()
    import pypdfium2.raw  # type: ignore[import-untyped]

    _limit(_memory, _seconds)
    _read(pypdfium2.raw, mmap.mmap(0, 0, access=mmap.ACCESS_COPY), _most, _password)
