"""The texts that a pipeline is given: strings, the lines of a file, or all of it."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from weft.data.bad_rows import BadRow
from weft.data.formats.lines import LineFormat
from weft.data.line_blocks import refuse_binary
from weft.errors import DataError, UserError

__all__ = ["GivenText", "is_pdf", "open_file", "text_lines", "whole_text"]

LONGEST_LINE = 1_000_000
"""Bytes: of a reference, of an abstract on one line."""
LARGEST = 50_000_000
"""Bytes of a file that is one text: ten times the longest novel."""
MAGIC, MAGIC_WITHIN = b"%PDF-", 1024
"""How a PDF begins, and within how many bytes readers look for it."""


@dataclass(frozen=True)
class GivenText:
    """A text to answer, or what stands where one could not be read."""

    text: str
    """The text; the beginning of what was not read."""
    line: int | None = None
    """The line of the file that it is, from 1."""
    problem: str | None = None
    """Why it was not read."""
    label: str | None = None
    """What it is called where it stands, as ``[12]``."""
    pages: Callable[[int], int] | None = None
    """Gives the page of a character, from 1."""

    def page_of(self, offset: int) -> int | None:
        """The page of a character; None where the text has no pages."""
        return None if self.pages is None else self.pages(offset)


def is_pdf(head: bytes) -> bool:
    """Whether a file begins as a PDF does, whatever its name is.

    Example:
        >>> is_pdf(b"%PDF-1.7 ..."), is_pdf(b"U. Dayal. Third generation TP monitors.")
        (True, False)
    """
    return MAGIC in head[:MAGIC_WITHIN]


@contextmanager
def open_file(path: Path) -> Iterator[BinaryIO]:
    """A file of a person's own, open for reading bytes.

    Raises:
        UserError: It cannot be read; says why.
    """
    try:
        file = path.open("rb")
    except OSError as error:
        raise UserError(f"{path} cannot be read: {error.strerror}.") from None
    with file:
        yield file


def text_lines(stream: BinaryIO, name: str) -> Iterator[GivenText]:
    """A text of each line that has one, in bounded memory; one that is no text has its problem.

    Raises:
        DataError: The whole file is no text.
    """
    layout = LineFormat({"text": 0}, (), separator=None, max_line_bytes=LONGEST_LINE)
    for number, found in layout.scan(stream, name):
        if isinstance(found, BadRow):
            yield GivenText(found.text_excerpt, line=number, problem=found.reason)
        elif found[0].strip():
            yield GivenText(found[0], line=number)


def whole_text(stream: BinaryIO, name: str) -> GivenText:
    """All of a file as one text.

    Raises:
        DataError: It is no text in UTF-8, or a longer one than can be meant.
    """
    content = stream.read(LARGEST + 1)
    refuse_binary(content, name)
    if len(content) > LARGEST:
        raise DataError(f"{name}: a text may have {LARGEST:,} bytes, this one has more.")
    try:
        return GivenText(content.decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise DataError(
            f"{name}: byte {error.start:,} is not UTF-8. Save it as UTF-8 first."
        ) from None
