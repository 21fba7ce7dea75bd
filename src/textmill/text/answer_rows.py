"""Answers as plain data: what ``textmill predict --json`` writes, and what a server answers.

The method ``row`` of an answer gives one of these, and its annotation says which: so a server says
what it answers before it is asked. Scores are probabilities, if nothing else is said.
"""

from typing import Any, NotRequired

from typing_extensions import TypedDict


class ClassifiedRow(TypedDict):
    """Of a classifier."""

    prediction: str
    """The most probable label; several, where a text can have them, with commas between."""
    score: float
    """Its probability."""
    scores: dict[str, float]
    """That of every label."""


class NumberRow(TypedDict):
    """Of a regression."""

    prediction: float
    """In the units of the training data."""


class RankedRow(NumberRow):
    """Of a ranking: how well a document answers a query."""

    negative_score: NotRequired[float]
    """In an evaluation, of the wrong document."""


class EmbeddedRow(TypedDict):
    """Of an embedding."""

    prediction: list[float]
    """The text's vector, each number to the nine digits that make a float32 of it again."""


class ComparedRow(TypedDict):
    """Of an embedding in an evaluation."""

    similarity: float
    """The cosine between the vectors of the row's two texts, from -1 to 1."""
    negative_similarity: NotRequired[float]
    """That of the first and the wrong one."""


class MarkedRow(TypedDict):
    """A part of a text."""

    text: str
    """As it is in the text."""
    start: int
    """Its first character, from 0; of a list of words, one space is between two."""
    end: int
    """After its last character."""
    score: float
    """Of its least certain word."""


class SpanRow(MarkedRow):
    """Neighbouring words of one kind."""

    kind: str
    """What they are."""


class SlotRow(MarkedRow):
    """A slot of a frame."""

    label: str
    """Which slot."""


class TaggedRow(TypedDict):
    """Of a tagger."""

    prediction: str
    """A tag for each word, with spaces between."""
    score: float
    """Of the least certain tag."""
    scores: list[float]
    """Of each tag."""
    spans: NotRequired[list[SpanRow]]
    """What the tags mark, where they mark spans."""


class FrameRow(TypedDict):
    """Of a task with intents and slots."""

    prediction: str
    """The frame in brackets."""
    score: float
    """Of the intent."""
    predicted_intent: str
    """The most probable intent."""
    predicted_slots: list[SlotRow]
    """In the order of the text."""


class TreeRow(TypedDict):
    """Of a parser that gives each word what opens and closes at it."""

    prediction: str
    """The tree of intents and slots in brackets."""
    score: float
    """Of its least certain word."""


class ExtractRow(TypedDict):
    """Of a summary by sentences of the text."""

    prediction: str
    """The sentences, with a space between two."""
    score: float
    """That one of them says most of all."""
    sentences: list[MarkedRow]
    """Each, in the order of the text; its score is that it says most of all."""


class FoundAnswerRow(TypedDict):
    """Of a question about a context."""

    prediction: str
    """As it is in the context; empty where it has no answer."""
    score: float
    """Of this answer, or that there is none."""
    start: int | None
    """Its first character in the context."""
    end: int | None
    """After its last character."""
    no_answer: NotRequired[float]
    """The probability that there is none, where the model says it."""


class AlternativeRow(TypedDict):
    """A generated text."""

    prediction: str
    """The text."""
    score: float
    """Its log-probability, divided by its length."""


class TextRow(AlternativeRow):
    """Of a task that generates: a translation, a summary, a parse."""

    alternatives: NotRequired[list[AlternativeRow]]
    """The others of an n-best search, best first."""


class ContinuedRow(AlternativeRow):
    """How a text goes on."""

    others: NotRequired[list[dict[str, Any]]]
    """Other ways, best first."""


class FillRow(TypedDict):
    """What a mask may stand for."""

    text: str
    """The token."""
    score: float
    """Its probability."""


class FilledRow(TypedDict):
    """A text with its masks filled."""

    prediction: str
    """The text."""
    score: float
    """Of its least certain mask."""
    masks: list[list[FillRow]]
    """For each mask, its most probable tokens."""
