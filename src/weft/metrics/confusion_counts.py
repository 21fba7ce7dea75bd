"""Precision, recall and F1 from three whole numbers, and their means over labels."""

import math
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from weft.metrics.tables import format_value, text_table

__all__ = ["ConfusionCounts", "macro", "micro", "tally_table"]


class ConfusionCounts(NamedTuple):
    """How often something was right, was predicted, and was to be found.

    Something that is neither predicted nor to be found has no precision, recall or F1: NaN. Of what
    does occur, a precision without predictions and a recall without anything to find are 0, as in
    scikit-learn, seqeval and PyText.

    Example:
        >>> tally = ConfusionCounts(right=2, predicted=3, expected=4)
        >>> round(tally.precision, 3), tally.recall, round(tally.f1, 3)
        (0.667, 0.5, 0.571)
        >>> ConfusionCounts(0, predicted=3, expected=0).recall, ConfusionCounts(0, 0, 0).recall
        (0.0, nan)
    """

    right: int
    predicted: int
    expected: int

    @property
    def occurs(self) -> bool:
        """Whether it was predicted or was to be found at all."""
        return self.predicted + self.expected > 0

    @property
    def precision(self) -> float:
        """``right / predicted``."""
        return self._share(self.predicted)

    @property
    def recall(self) -> float:
        """``right / expected``."""
        return self._share(self.expected)

    @property
    def f1(self) -> float:
        """``2 * right / (predicted + expected)``, the harmonic mean of precision and recall."""
        return 2 * self._share(self.predicted + self.expected)

    def values(self) -> dict[str, float]:
        """Precision, recall, F1 and support (how many were to be found), by name."""
        return {
            "precision": self.precision,
            "recall": self.recall,
            "f1": self.f1,
            "support": float(self.expected),
        }

    def _share(self, of: int) -> float:
        if not self.occurs:
            return math.nan
        return self.right / of if of else 0.0


def micro(tallies: Iterable[ConfusionCounts]) -> ConfusionCounts:
    """All of them as one: each prediction counts alike, so frequent labels weigh more.

    Example:
        >>> micro([ConfusionCounts(1, 2, 2), ConfusionCounts(0, 1, 3)])
        ConfusionCounts(right=1, predicted=3, expected=5)
    """
    columns = list(zip(*tallies, strict=True)) or [()] * 3
    right, predicted, expected = (sum(column) for column in columns)
    return ConfusionCounts(right, predicted, expected)


def macro(tallies: Iterable[ConfusionCounts]) -> dict[str, float]:
    """The plain means of precision, recall and F1 over those that occur; NaN where none does.

    Example:
        >>> counts = [(1, 1, 2), (1, 2, 2), (0, 1, 0), (0, 0, 0)]
        >>> macro(ConfusionCounts(*each) for each in counts)["precision"]
        0.5
    """
    found = [tally for tally in tallies if tally.occurs]
    return {
        "precision": _mean([tally.precision for tally in found]),
        "recall": _mean([tally.recall for tally in found]),
        "f1": _mean([tally.f1 for tally in found]),
    }


def _mean(values: list[float]) -> float:
    return math.fsum(values) / len(values) if values else math.nan


def tally_table(tallies: Mapping[str, ConfusionCounts]) -> str:
    """A line per label; ``-`` where it has no value.

    Example:
        >>> print(tally_table({"ham": ConfusionCounts(2, 3, 4), "spam": ConfusionCounts(0, 0, 0)}))
        label  precision  recall      f1  support
        ham       66.7 %  50.0 %  57.1 %        4
        spam           -       -       -        0
    """
    rows = [
        [
            name,
            *(format_value(title, value) for title, value in tally.values().items()),
        ]
        for name, tally in tallies.items()
    ]
    return text_table(["label", "precision", "recall", "f1", "support"], rows)
