"""Metrics that hold predicted texts against one or more right ones: exact match, SQuAD."""

import re
import string
from abc import abstractmethod
from collections import Counter
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

from typing_extensions import override

from textmill.metrics import registries
from textmill.metrics.metric import Direction, MetricError, RowMetric, aligned, with_references
from textmill.metrics.streaming import Averaged

_PUNCTUATION = str.maketrans("", "", string.punctuation)
_ARTICLES = re.compile(r"\b(a|an|the)\b")
_NAMES = ("exact_match", "f1")


class TextMetric(RowMetric):
    """Base of metrics of texts: BLEU, ROUGE, exact match.

    Of a row it takes the ``prediction``, and what is right: its ``references``, a list, where it
    has them, else the column that ``target`` names.
    """

    class Config(RowMetric.Config):
        target: str = "target"
        """The column of the right text, where rows have no ``references``; of labels ``label``."""

    config: Config

    @abstractmethod
    @override
    def update(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """Adds texts, with one or more right texts of each."""

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return (self.config.target,)

    @override
    def measure(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows with their predictions; refuses answers, or right ones, that are no texts."""
        target = self.config.target
        texts: list[Any] = [row.get("prediction") for row in rows]
        right: list[Any] = [row.get("references") or [row.get(target)] for row in rows]
        if not all(isinstance(one, str) for many in (texts, *right) for one in many):
            raise MetricError(
                f"{type(self).__name__} compares texts, but of the columns 'prediction' and "
                f"'{target}' (its setting target) one holds others: {texts[:1]} and {right[:1]}."
            )
        self.update(texts, right)


@registries.metrics.register("exact_match")
class ExactMatch(Averaged, TextMetric):
    """Generated texts against one or more references each; ``exact_match`` is from 0 to 1.

    A text is right if it is a reference once runs of white space are one space and those at the
    ends are gone; nothing else is ignored.
    """

    def __init__(self, config: TextMetric.Config) -> None:
        self.config = config
        super().__init__({"exact_match": "higher"})

    @override
    def update(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        for text, right in with_references(self, texts, references):
            self.add("exact_match", text.split() in [reference.split() for reference in right])

    @override
    def errors(self) -> dict[str, float]:
        return self.share_errors("exact_match")


def normalized_answer(text: str) -> str:
    """The text in lower case, without ASCII punctuation, English articles and extra white space."""
    return " ".join(_ARTICLES.sub(" ", text.lower().translate(_PUNCTUATION)).split())


class SquadScores(Averaged):
    """Predicted answers against one or more right ones, or against none: it has no answer.

    Values, from 0 to 1: ``exact_match``, the share of answers that equal a right one once both are
    normalized; ``f1``, the mean over rows of the best F1 of an answer's words with those of a right
    one. Then the same over the rows that have an answer (``has_answer/exact_match``,
    ``has_answer/f1``) and those that have none (``no_answer/…``); NaN where there is no such row.
    The empty text says that there is no answer, which is right in full or not at all (Rajpurkar et
    al. 2018). A reference of which normalizing leaves nothing is left out, as in their script.
    """

    def __init__(self) -> None:
        groups = ("", "has_answer/", "no_answer/")
        names: dict[str, Direction] = {f"{g}{name}": "higher" for g in groups for name in _NAMES}
        super().__init__(names)

    @override
    def update(self, predicted: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """Adds questions: the answer given to each (empty: none), and its right ones, if any."""
        rows = list(aligned(self, predicted, references))
        for row, (_, right) in enumerate(rows):
            if isinstance(right, str):
                raise MetricError(
                    f"SquadScores needs a list of right answers (empty: none) for each "
                    f"question, but question {row + 1} of {len(rows)} has the string {right!r}."
                )
        for text, right in rows:
            given = normalized_answer(text)
            answers = [answer for one in right if (answer := normalized_answer(one))] or [""]
            values = (given in answers, max(_word_f1(given, answer) for answer in answers))
            for name, value in zip(_NAMES, values, strict=True):
                self.add(name, value)
                self.add(f"{'has_answer' if right else 'no_answer'}/{name}", value)

    @override
    def errors(self) -> dict[str, float]:
        return self.share_errors(*_NAMES)


def _word_f1(given: str, right: str) -> float:
    ours, theirs = given.split(), right.split()
    if not ours or not theirs:
        return float(ours == theirs)
    common = (Counter(ours) & Counter(theirs)).total()
    return float(Fraction(2 * common, len(ours) + len(theirs)))
