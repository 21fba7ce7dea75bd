"""Scores of dev rows in percent, and their standard errors.

Each score here is a ratio of two sums over rows: of right words over words, or of twice the right
spans over those found and those there. So one definition of the standard error serves all: the
standard deviation of the score over 1,000 resamples of the dev rows, drawn with replacement (the
bootstrap, Efron 1979) by the seed 0. Rows are sentences, messages or references, since the words of
one are not independent; where a row is one answer, it is the binomial error.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.results.found import Found
from textmill.text.features.tag_spans import Scheme, tag_spans

RESAMPLES = 1000

Tags = Sequence[Sequence[str]]
"""The tags of rows."""


@dataclass(frozen=True)
class Score:
    """A score in percent with what each row adds to it."""

    above: NDArray[np.float64]
    """What each row adds to the numerator."""
    below: NDArray[np.float64]
    """What each row adds to the denominator."""

    @property
    def value(self) -> float:
        return 100 * float(self.above.sum() / max(self.below.sum(), 1e-9))

    @property
    def standard_error(self) -> float:
        """The standard deviation over resamples of the rows."""
        chance, rows = np.random.default_rng(0), len(self.above)
        values = []
        for _ in range(RESAMPLES):
            drawn = np.bincount(chance.integers(rows, size=rows), minlength=rows)
            values.append(100 * (drawn @ self.above) / max(drawn @ self.below, 1e-9))
        return float(np.std(values))


def found_of(scores: Mapping[str, Score], **details: Any) -> Found:
    """Scores as the ledger keeps them."""
    values = {name: score.value for name, score in scores.items()}
    return Found(values, {name: score.standard_error for name, score in scores.items()}, details)


def accuracy(gold: Sequence[str], found: Sequence[str]) -> Score:
    """The share of rows whose answer is right."""
    right = [a == b for a, b in zip(gold, found, strict=True)]
    return Score(np.array(right, dtype=float), np.ones(len(right)))


def whole_rows(gold: Tags, found: Tags) -> Score:
    """The share of rows all of whose tags are right."""
    return accuracy([" ".join(row) for row in gold], [" ".join(row) for row in found])


def token_accuracy(gold: Tags, found: Tags) -> Score:
    """The share of words whose tag is right."""
    right = [
        sum(a == b for a, b in zip(wanted, given, strict=True))
        for wanted, given in zip(gold, found, strict=True)
    ]
    return Score(np.array(right, dtype=float), np.array([len(row) for row in gold], dtype=float))


def span_f1(gold: Tags, found: Tags, scheme: Scheme) -> Score:
    """F1 of spans, micro: as ``conlleval`` and seqeval count them."""
    above, below = [], []
    for wanted, given in zip(gold, found, strict=True):
        there, answered = Counter(tag_spans(wanted, scheme)), Counter(tag_spans(given, scheme))
        above.append(2 * (there & answered).total())
        below.append(there.total() + answered.total())
    return Score(np.array(above, dtype=float), np.array(below, dtype=float))
