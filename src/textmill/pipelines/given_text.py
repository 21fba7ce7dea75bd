"""The texts that a pipeline is given, and the spans that labels of words mark in them."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, BinaryIO

from textmill.data.bad_rows import BadRow
from textmill.data.formats.lines import bare_lines
from textmill.data.line_blocks import refuse_binary
from textmill.errors import DataError
from textmill.text.answers import TaggedSpan
from textmill.text.features.tag_spans import Scheme, tag_spans
from textmill.text.processors.tagging import Tagged, TaggingText

if TYPE_CHECKING:
    from textmill.pipelines.documents import Passage

LONGEST_LINE = 1_000_000
"""Bytes: of a reference, of an abstract on one line."""
LARGEST = 10_000_000
"""Bytes of a file that is one text: twice the longest novel."""
HEAD = 1024
"""Bytes within which a PDF says that it is one."""


@dataclass(frozen=True)
class GivenText:
    """A text to answer, or the place of one that could not be read."""

    text: str
    """The text; its beginning if it was not read."""
    line: int | None = None
    """The line of the file that it is, from 1."""
    problem: str | None = None
    """Why it was not read."""
    label: str | None = None
    """The label before it in its document, as ``[12]``."""
    passage: "Passage | None" = None
    """Where it is in a document with pages."""

    def page_of(self, offset: int) -> int | None:
        """The page of a character, from 1; None where the text has no pages."""
        return None if self.passage is None else self.passage.page_of(offset)

    @property
    def place(self) -> dict[str, Any]:
        """Where it begins, as a result says it."""
        return {"line": self.line, "page": self.page_of(0)}

    @classmethod
    def of(cls, passage: "Passage") -> "GivenText":
        """A passage of a document."""
        return cls(passage.text, label=passage.label, passage=passage if passage.text else None)


def is_pdf(head: bytes) -> bool:
    """Whether a file begins as a PDF does; its name does not matter."""
    return b"%PDF-" in head[:HEAD]


def text_lines(stream: BinaryIO, name: str) -> Iterator[GivenText]:
    """A text of each line that has one, in bounded memory; one that is no text has its problem."""
    for number, found in bare_lines(longest=LONGEST_LINE).scan(stream, name):
        if isinstance(found, BadRow):
            yield GivenText(found.text_excerpt, line=number, problem=found.reason)
        elif found[0].strip():
            yield GivenText(found[0], line=number)


def whole_text(stream: BinaryIO, name: str) -> GivenText:
    """All of a file as one text."""
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


@dataclass(frozen=True, kw_only=True)
class PlacedSpan(TaggedSpan):
    """Neighbouring words of one kind; ``str()`` gives their text.

    Example:
        >>> print(PlacedSpan(kind="date", text="May 1993.", start=8, end=17, score=0.9))
        May 1993.
    """

    keys = (*TaggedSpan.keys, "page?")

    page: int | None = None
    """Where it begins, from 1; None of a text without pages."""


def placed_spans(
    given: GivenText, places: Sequence[tuple[int, int]], answer: Tagged, scheme: Scheme
) -> list[tuple[PlacedSpan, range]]:
    """The spans that labels of words mark in a text, each with the numbers of its words.

    ``places`` are those of the words; words after the last label have none.
    """
    found = []
    for kind, first, after in tag_spans(answer.tags, scheme):
        start, end = places[first][0], places[after - 1][1]
        span = PlacedSpan(
            kind=kind,
            text=given.text[start:end],
            start=start,
            end=end,
            score=min(answer.scores[first:after]),
            page=given.page_of(start),
        )
        found.append((span, range(first, after)))
    return found


def marked_kinds(text: TaggingText) -> list[str]:
    """The kinds that a model's labels mark, sorted; if they mark no spans, each is a kind."""
    names = text.tags.labels.names
    scheme = text.scheme or "io"
    return sorted({span.kind for name in names for span in tag_spans([name], scheme)})
