"""Spans that the labels of words mark in a text, each with its characters and its page."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NotRequired

from typing_extensions import override

from textmill.pipelines.given_text import GivenText
from textmill.text.answer_rows import SpanRow
from textmill.text.features.tag_spans import Scheme, tag_spans
from textmill.text.processors.tagging import Tagged, TaggingText


class PlacedSpanRow(SpanRow):
    """A span as plain data."""

    page: NotRequired[int]
    """From 1, of a document with pages."""


@dataclass(frozen=True, kw_only=True)
class PlacedSpan:
    """Neighbouring words of one kind; ``str()`` gives their text.

    Example:
        >>> print(PlacedSpan(kind="date", text="May 1993.", start=8, end=17, score=0.9))
        May 1993.
    """

    kind: str
    """What they are."""
    text: str
    """As it is in the text that was given."""
    start: int
    """The first character there, from 0."""
    end: int
    """After the last character."""
    score: float
    """The probability of the least certain label, from 0 to 1."""
    page: int | None = None
    """Where it begins, from 1; None of a text without pages."""

    @override
    def __str__(self) -> str:
        return self.text

    def row(self) -> PlacedSpanRow:
        """The same as plain data."""
        row: PlacedSpanRow = {
            "kind": self.kind,
            "text": self.text,
            "start": self.start,
            "end": self.end,
            "score": round(self.score, 6),
        }
        if self.page is not None:
            row["page"] = self.page
        return row


def placed_spans(
    given: GivenText, places: Sequence[tuple[int, int]], answer: Tagged, scheme: Scheme
) -> list[tuple[PlacedSpan, range]]:
    """What labels of words mark in a text, each with the numbers of its words.

    Args:
        given: The text.
        places: Where each word begins and ends; those behind the last label have none.
        answer: The labels.
        scheme: How they mark spans.

    Example:
        >>> tagged = Tagged(("author", "date"), (0.9, 0.8))
        >>> found = placed_spans(GivenText("Knuth 1984"), [(0, 5), (6, 10)], tagged, "io")
        >>> [(span.kind, span.text, [*words]) for span, words in found]
        [('author', 'Knuth', [0]), ('date', '1984', [1])]
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
    """What the labels of a model mark, sorted; labels that mark no spans name a kind each."""
    names = text.tags.labels.names
    scheme = text.scheme or "io"
    return sorted({span.kind for name in names for span in tag_spans([name], scheme)})
