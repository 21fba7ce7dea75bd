"""Spans that the labels of words mark in a text, each with its characters and its page."""

from collections.abc import Sequence
from dataclasses import dataclass

from textmill.pipelines.given_text import GivenText
from textmill.text.answers import TaggedSpan
from textmill.text.features.tag_spans import Scheme, tag_spans
from textmill.text.processors.tagging import Tagged, TaggingText


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
