"""Whether probabilities are what they say, and what makes them so: a temperature, and thresholds.

Sources: Guo et al. 2017, "On Calibration of Modern Neural Networks" (temperature, calibration
error); Clopper and Pearson 1934 (lower bound of a share).
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.metrics.metric import Count, Direction, Metric, aligned, nan_without, share_of
from textmill.metrics.tables import format_value

BINS = 15
UNIT = 1 << 40
"""Scores are added as whole numbers of 1 / UNIT, so that their order does not matter."""
LOWEST, HIGHEST = 0.01, 100.0
"""The range of temperatures."""
HEADER = ("score", "answers", "mean score", "right")
"""Of a reliability table as text."""
LEVELS = 20
"""Numbers of answered rows that are tried for a threshold."""
DOUBT = 0.01
"""The probability that the bound of one such number is wrong. They depend on each other: in
simulations one in twenty thresholds misses the share where scores say nothing, fewer else."""


class CalibrationError(Metric):
    """How far scores are from being probabilities.

    The value ``calibration_error`` is the expected calibration error of Guo et al.: the distance
    between the mean score and the share of right answers in each of 15 bins of equal width, and of
    these the mean, weighted by rows. If a row can have several labels, each label is an answer,
    right if the row has it. A score that is not a number makes the value NaN.
    """

    def __init__(self) -> None:
        self._rows, self._units, self._right = (defaultdict[int, Count](int) for _ in range(3))
        self._not_numbers = False

    @override
    def update(self, scores: Sequence[float], right: Sequence[bool]) -> None:
        """Adds answers: the score of each, from 0 to 1, and whether it is right."""
        for score, is_right in aligned(self, scores, right):
            if math.isnan(score):
                self._not_numbers = True
                continue
            place = min(max(math.ceil(score * BINS) - 1, 0), BINS - 1)
            self._rows[place] += self.weight
            self._units[place] += round(score * UNIT) * self.weight
            self._right[place] += is_right * self.weight

    @override
    def compute(self) -> dict[str, float]:
        rows = 0 if self._not_numbers else sum(self._rows.values())
        gaps = (self._units[place] - UNIT * self._right[place] for place in self._rows)
        apart = sum(abs(Fraction(gap)) for gap in gaps)
        return nan_without(rows, {"calibration_error": share_of(apart, UNIT * rows)})

    @override
    def directions(self) -> dict[str, Direction]:
        return {"calibration_error": "lower"}

    def table(self) -> list[tuple[float, float, float, float, float]]:
        """For each bin that has rows: its edges, their number, mean score, and share of right ones.

        A score on an edge belongs to the bin below it.
        """
        return [
            (at / BINS, (at + 1) / BINS, float(n), *shares)
            for at, n in sorted(self._rows.items())
            for shares in [(share_of(self._units[at], UNIT * n), share_of(self._right[at], n))]
        ]


def reliability(table: Iterable[tuple[float, float, float, float, float]]) -> list[list[str]]:
    """The lines of a table as text."""
    return [
        [f"{low:.3f} - {high:.3f}", f"{n:,.0f}", *(format_value("share", each) for each in shares)]
        for low, high, n, *shares in table
    ]


def fit_temperature(scores: NDArray[Any], right: NDArray[Any], *, independent: bool) -> float:
    """The temperature :math:`T` at which scores divided by it make the right labels likeliest.

    The negative log-likelihood is convex in :math:`1/T`: its slope is bisected. If every answer is
    right, the result is ``LOWEST``.

    Args:
        scores: Unnormalized. *Shape:* ``[N, L]``.
        right: 1 at the labels that a row has. *Shape:* ``[N, L]``.
        independent: Whether each label has a probability of its own (sigmoid, not softmax).
    """
    given, wanted = scores.astype(np.float64), right.astype(np.float64)
    low, high = math.log(LOWEST), math.log(HIGHEST)
    for _ in range(60):
        middle = (low + high) / 2
        raised = given * math.exp(-middle)
        if independent:
            chances = np.exp(-np.logaddexp(0, -raised))
        else:
            chances = np.exp(raised - np.logaddexp.reduce(raised, axis=1, keepdims=True))
        is_low = ((chances - wanted) * given).sum() > 0
        low, high = (middle, high) if is_low else (low, middle)
    return math.exp(low)


def rows_needed(correct: float) -> int:
    """The fewest rows, all of them right, that can show a share of correct answers."""
    return math.ceil(math.log(DOUBT) / math.log(correct))


def threshold(scores: NDArray[Any], right: NDArray[Any], correct: float) -> float | None:
    """The threshold above which the most rows are answered, a share correct; None: there is none.

    Of ``LEVELS`` numbers of rows, those of the highest scores, the largest is taken for which the
    lower bound of Clopper and Pearson, with ``DOUBT``, is the wanted share or more. *Shape:*
    ``[N]`` twice.
    """
    order, least = np.argsort(-scores, kind="stable"), rows_needed(correct)
    ranked, hits = scores[order], np.cumsum(right[order])
    if least > len(ranked):
        return None
    for count in np.geomspace(len(ranked), least, LEVELS).round().astype(int).tolist():
        bound = float(ranked[count]) if count < len(ranked) else 0.0
        kept = int((ranked > bound).sum())  # equal scores are answered alike
        wrong = kept - int(hits[kept - 1]) if kept else 0
        if kept and _at_most(wrong, kept, 1 - correct) <= DOUBT:
            return bound
    return None


def _at_most(wrong: int, rows: int, share: float) -> float:
    """The probability that so many rows or fewer are wrong, if a ``share`` is on average."""
    steps = np.arange(wrong)
    ratios = np.log((rows - steps) / (steps + 1)) + math.log(share) - math.log1p(-share)
    terms = rows * math.log1p(-share) + np.concatenate([[0.0], np.cumsum(ratios)])
    return float(np.exp(np.logaddexp.reduce(terms)))
