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
from collections.abc import Iterator, Sequence
from dataclasses import fields
from operator import attrgetter
from typing import Any

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


class _Word:
    """Characters that stand together."""

    def __init__(self, at: int, space: bool, box: tuple[float, float, float, float]) -> None:
        self.at, self.space, self.codes = at, space, list[int]()
        self.left, self.bottom, self.right, self.top = box

    def takes(self, box: tuple[float, float, float, float]) -> bool:
        """Whether a character belongs to it, and if so has it.

        It stands beside the others, whichever way the text runs.
        """
        left, bottom, right, top = box
        height, width = self.top - self.bottom, self.right - self.left
        level = abs(bottom - self.bottom) + abs(top - self.top) <= SAME_LINE * height
        upright = abs(left - self.left) + abs(right - self.right) <= SAME_LINE * width
        jumps = level and not self.left - FAR * height <= left <= self.right + FAR * height
        if jumps or not (level or upright):
            return False
        self.left, self.right = min(self.left, left), max(self.right, right)
        self.bottom, self.top = min(self.bottom, bottom), max(self.top, top)
        return True


def _words(raw: Any, text: Any, count: int) -> Iterator[_Word]:
    rect = raw.FS_RECTF()
    pointer = ctypes.byref(rect)
    unicode_of, box_of = raw.FPDFText_GetUnicode, raw.FPDFText_GetLooseCharBox
    word: _Word | None = None
    space = True
    for at in range(count):
        code = unicode_of(text, at)
        if code <= 32 and code != HYPHEN:
            space = True
            continue
        box_of(text, at, pointer)
        box = (rect.left, rect.bottom, rect.right, rect.top)
        if space or word is None or word.codes[-1] == HYPHEN or not word.takes(box):
            if word is not None:
                yield word
            word = _Word(at, space, box)
        word.codes.append(code)
        space = False
    if word is not None:
        yield word


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
        x, y, matrix = ctypes.c_double(), ctypes.c_double(), raw.FS_MATRIX()
        name, flags = ctypes.create_string_buffer(128), ctypes.c_int()
        found: list[list[tuple[Any, ...]]] = [[], [], [], []]
        for word in _words(raw, text, count):
            raw.FPDFText_GetCharOrigin(text, word.at, x, y)
            raw.FPDFText_GetMatrix(text, word.at, matrix)
            raw.FPDFText_GetFontInfo(text, word.at, name, 128, flags)
            scale = math.hypot(matrix.c, matrix.d) or 1.0
            size = abs(raw.FPDFText_GetFontSize(text, word.at)) * scale
            turn = round(math.atan2(matrix.b, matrix.a) / (math.pi / 2)) % 4
            bold = any(each in name.value.decode("latin-1").lower() for each in BOLD)
            left, bottom, right, top = word.left, word.bottom, word.right, word.top
            places = (
                (left, right, -y.value),
                (bottom, top, x.value),
                (-right, -left, y.value),
                (-top, -bottom, -x.value),
            )
            numbers = tuple(round(n, 1) if math.isfinite(n) else 0.0 for n in (*places[turn], size))
            found[turn].append((_characters(word.codes), *numbers, bold, word.space))
    finally:
        raw.FPDFText_ClosePage(text)
    return max(found, key=lambda words: sum(len(word[0]) for word in words))


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
