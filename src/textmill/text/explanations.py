"""Why an answer is what it is: what becomes of it without each word of its text.

Leaving words out (occlusion) asks nothing of a model but answers, so runs and exports explain
themselves alike, whatever is in them. Of a linear model the weights are its own coefficients.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from typing_extensions import override

from textmill.errors import DataError
from textmill.text.answers import Answer

PARTS = 100
"""Most parts of a row that are left out, each for itself: of a longer text some words together."""
CHARACTERS = 1_000_000
"""Of all texts that an explanation asks about, about: a longer row has fewer parts."""
SHOWN = 10
"""Parts that ``repr`` shows, those of most weight."""
WIDEST = 40
"""Characters of a part that ``repr`` shows."""
_ALONE = "\u0e00-\u0eff\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff"
"""Letters of scripts that write no spaces (Thai, Khmer, Japanese, Chinese): each is a part."""
WORD = re.compile(
    rf"[{_ALONE}]|(?:(?![{_ALONE}])\w)+(?:['\u2019.-](?:(?![{_ALONE}])\w)+)*|[^\w\s]+"
)


@dataclass(frozen=True, kw_only=True)
class Reason(Answer):
    """A part of a row, and what it does to the answer."""

    keys = ("text", "start", "end", "weight", "without", "column")

    text: str
    """As it is in the row: a word or a sign; of a long text several words."""
    start: int
    """The first character, from 0."""
    end: int
    """After the last character."""
    weight: float
    """How much less speaks for the answer without it, below 0: how much more. Of a label in log
    odds (natural logarithm), of a number in its own unit."""
    without: float
    """The label's probability, or the number, without it."""
    column: str
    """Where it is."""


@dataclass(frozen=True, kw_only=True)
class NgramWeight(Answer):
    """An n-gram of a text, and what it adds to the score of a label."""

    keys = ("ngram", "kind", "weight")

    ngram: str
    """Words, an empty one for the beginning; shapes of words; or characters of a word, with a space
    for its beginning and its end."""
    kind: str
    """``words``, ``shapes`` or ``characters``."""
    weight: float
    """The n-gram's weight of the label, times its value in this text. Those of all n-grams, and the
    label's bias, add up to its score, of which the probability is made."""


@dataclass(frozen=True, repr=False)
class Explanation(Answer):
    """An answer with its reasons; ``repr`` shows those of most weight."""

    keys = ("reasons",)

    answer: Any
    """What the model answers."""
    label: str
    """The label that is explained: the answer's, or its most probable; empty: a number is."""
    score: float
    """The probability of the label, or the number."""
    reasons: tuple[Reason, ...]
    """The parts of the row, in its order."""
    ngrams: tuple[NgramWeight, ...] = ()
    """All n-grams of the row, those of most weight first, if the model is linear in them."""

    @override
    def row(self) -> dict[str, Any]:
        return {**self.answer.row(), **super().row()}

    @override
    def __str__(self) -> str:
        return str(self.answer)

    @override
    def __repr__(self) -> str:
        form = "{:.1%}" if self.label else "{:.4g}"
        head = f"{self.label} {form}" if self.label else form
        strongest = sorted(self.reasons, key=lambda reason: -abs(reason.weight))[:SHOWN]
        most = max((abs(reason.weight) for reason in strongest), default=0.0) or 1.0
        lines = [
            f"{reason.weight:+9.3f}  {form.format(reason.without):>9}  "
            f"{'█' * round(8 * abs(reason.weight) / most):8}  {_short(reason.text)}"
            for reason in strongest
        ]
        more = len(self.reasons) - len(strongest)
        end = [f"{more} more parts weigh less"] if more else []
        if self.ngrams:
            shown = (f"{each.ngram!r} {each.weight:+.3f}" for each in self.ngrams[:SHOWN])
            end.append(f"n-grams: {', '.join(shown)}")
        return "\n".join([head.format(self.score), "   weight    without", *lines, *end])


class PartsLeftOut:
    """A row without each of its parts, and what the answers to these rows say.

    Args:
        row: The row to explain.
        columns: Its texts; those that are no string have no parts.

    Raises:
        DataError: None of them is a string with a word.

    Example:
        >>> PartsLeftOut({"text": "so good, so what"}, ["text"]).rows[2]
        {'text': 'so , so what'}
    """

    def __init__(self, row: Mapping[str, Any], columns: Sequence[str]) -> None:
        texts = {name: row[name] for name in columns if isinstance(row.get(name), str)}
        most = min(PARTS, CHARACTERS // max(1, sum(map(len, texts.values()))))
        found = [
            (name, *match.span()) for name, text in texts.items() for match in WORD.finditer(text)
        ]
        if not found:
            names = ", ".join(columns)
            raise DataError(f"An explanation wants a string with a word in {names}; found none.")
        size = math.ceil(len(found) / max(1, most))
        self.parts = [
            (name, words[0][1], words[-1][2])
            for name in texts
            for words in _groups([place for place in found if place[0] == name], size)
        ]
        self.rows: list[Mapping[str, Any]] = [row]
        self.rows += [{**row, name: _without(row[name], *place)} for name, *place in self.parts]

    def explanation(self, answers: Sequence[Any], label: str | None = None) -> Explanation:
        """What the answers to :attr:`rows` say; of another label than the answer's, if named.

        Raises:
            UserError: The model has no such label.
        """
        whole, *others = answers
        label, score, evidence = whole.evidence(label)
        reasons = []
        for (column, start, end), other in zip(self.parts, others, strict=True):
            _, without, left = other.evidence(label)
            text = self.rows[0][column][start:end]
            place = {"text": text, "start": start, "end": end, "column": column}
            reasons.append(Reason(**place, weight=evidence - left, without=without))
        return Explanation(whole, label, score, tuple(reasons))


def _groups(places: Sequence[Any], size: int) -> list[Sequence[Any]]:
    return [places[at : at + size] for at in range(0, len(places), size)]


def _without(text: str, start: int, end: int) -> str:
    before, after = text[:start], text[end:]
    return before + (after.lstrip() if not before or before[-1].isspace() else after)


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= WIDEST else f"{line[: WIDEST - 1]}…"
