"""Spans that tags of words mark, such as named entities."""

from collections.abc import Iterator, Sequence
from typing import Any, Literal, NamedTuple

Scheme = Literal["bio", "bilou", "io"]
"""How tags mark spans: ``B-`` begins one and ``I-`` goes on; with ``L-`` for its last token and
``U-`` for one of a single token, which IOBES writes ``E-`` and ``S-``; or ``I-``, or the bare kind,
on every token of it."""

MARKS: dict[Scheme, tuple[str, ...]] = {
    "bio": ("B", "I"),
    "bilou": ("B", "I", "L", "U", "E", "S"),
    "io": ("I",),
}

IOBES = {"E": "L", "S": "U"}
"""The marks of IOBES, by another name those of ``bilou``."""

NO_KIND = "_"
"""The kind of spans whose tags are bare marks, such as ``B`` and ``I``; seqeval calls it so too."""


class Span(NamedTuple):
    """Tokens ``start`` to before ``end``, of one kind."""

    kind: str
    start: int
    end: int


def tag_spans(tags: Sequence[str], scheme: Scheme = "bio") -> list[Span]:
    """The spans of one sentence, read as ``conlleval`` and seqeval do: every tag counts.

    A span goes on as long as ``I-`` or ``L-`` of the same kind follow; any other tag but ``O``
    begins one, so ``I-`` after ``O`` or after another kind does so too. A bare mark, such as ``B``,
    is of the kind ``_``.
    """
    spans: list[Span] = []
    open_ = False  # whether the last span goes up to the token, and may go on with it
    for place, tag in enumerate(tags):
        mark, kind = _parts(tag, scheme)
        if open_ and mark in ("I", "L") and kind == spans[-1].kind:
            spans[-1] = spans[-1]._replace(end=place + 1)
        elif mark != "O":
            spans.append(Span(kind, place, place + 1))
        open_ = mark in ("B", "I")
    return spans


def _parts(tag: str, scheme: Scheme) -> tuple[str, str]:
    mark, dash, kind = tag.partition("-")
    if tag == "O":
        return "O", ""
    if mark in MARKS[scheme] and (kind or not dash):
        return IOBES.get(mark, mark), kind or NO_KIND
    if scheme == "io" and tag:
        return "I", tag
    marks = ", ".join(f"{mark}-KIND" for mark in MARKS[scheme])
    message = f"A tag of the scheme {scheme} is O or {marks}, but there is {tag!r}."
    raise ValueError(message)


def marked_parts(
    text: str,
    places: Sequence[tuple[int, int]],
    tags: Sequence[str],
    scores: Sequence[float],
    scheme: Scheme = "bio",
) -> Iterator[tuple[str, dict[str, Any]]]:
    """What the tags of a text's words mark: its kind, and its text, characters and least score."""
    for kind, first, after in tag_spans(tags, scheme):
        start, end = places[first][0], places[after - 1][1]
        score = min(scores[first:after])
        yield kind, {"text": text[start:end], "start": start, "end": end, "score": score}
