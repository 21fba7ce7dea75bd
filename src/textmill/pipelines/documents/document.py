"""A document as lines in reading order, and passages of it that know their pages."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from textmill.errors import DataError


class DocumentError(DataError):
    """A document that cannot be read.

    Args:
        name: What the document is called.
        reason: What was wanted, what was found, and what to do.
        page: The page it was found on, from 1; None where it is about the whole.
    """

    def __init__(self, name: str, reason: str, *, page: int | None = None) -> None:
        self.name, self.reason, self.page = name, reason, page
        super().__init__(f"{name}: {'' if page is None else f'page {page}: '}{reason}")


@dataclass(frozen=True, slots=True)
class Line:
    """A line of one column of a page; lengths are in points, y grows downwards."""

    text: str
    page: int = 1
    """From 1."""
    x0: float = 0.0
    """Where its text begins."""
    x1: float = 0.0
    """Where it ends."""
    y: float = 0.0
    """Of its baseline."""
    size: float = 0.0
    """Of most of its characters."""
    bold: bool = False
    """Whether most of its characters are."""
    column: int = 0
    """The number of its column on its page, in reading order."""
    left: float = 0.0
    """The left edge of the column."""
    right: float = 0.0
    """Its right edge."""
    second: float = 0.0
    """Where the second word begins; ``x0`` where there is none."""
    raised: bool = False
    """Whether the first word is a superscript."""

    @property
    def where(self) -> tuple[int, int]:
        """Its page and column."""
        return self.page, self.column


@dataclass(frozen=True)
class Passage:
    """A text of a document, line ends mended, that knows which page each character is on."""

    text: str
    label: str | None = None
    """What a reference is cited by where it is numbered, as it is written: ``[12]``, ``3.``."""
    starts: tuple[tuple[int, int], ...] = field(default=((0, 1),), repr=False)
    """Offsets where the text of another page begins, rising, each with the page."""

    def page_of(self, offset: int) -> int:
        """The page, from 1, of the character at an offset; of a text file, 1."""
        return self.starts[max(bisect_right(self.starts, (offset, 1 << 30)) - 1, 0)][1]


def joined_passages(passages: Iterable[Passage]) -> Passage:
    """Passages as one, with an empty line between two."""
    parts, starts, length = list[str](), list[tuple[int, int]](), 0
    for passage in passages:
        if passage.text:
            starts += [(at + length, page) for at, page in passage.starts]
            parts.append(passage.text)
            length += len(passage.text) + 2
    return Passage("\n\n".join(parts), starts=tuple(starts) or ((0, 1),))


@dataclass(frozen=True)
class Parts:
    """References, abstract and body of a document."""

    references: Sequence[Passage]
    """Each reference, in order; empty without a list of them."""
    abstract: Passage | None
    """None if the document has none."""
    body: Passage
    """From the introduction to the references."""


@dataclass(frozen=True)
class Document:
    r"""A document: its lines in reading order, without running heads and page numbers.

    Example:
        >>> document = Document("notes.txt", 1, [Line("Two lines"), Line("of text.")])
        >>> document.text
        'Two lines\nof text.'
    """

    name: str
    pages: int
    """How many it has; a text file has one."""
    lines: Sequence[Line] = field(repr=False)
    parts: Parts | None = field(default=None, repr=False)
    """Of a PDF: found by the process that read it, within its limits. None: not looked for yet."""

    @property
    def text(self) -> str:
        """Its lines as they stand, each on a line of its own."""
        return "\n".join(line.text for line in self.lines)
