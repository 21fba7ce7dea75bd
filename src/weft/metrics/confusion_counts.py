"""Precision, recall and F1 from three whole numbers, and their means over labels."""

import math
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from weft.metrics.streaming import Counted
from weft.metrics.tables import format_value, text_table

__all__ = ["ConfusionCounts", "LabelCounted", "label_values", "macro", "micro", "tally_table"]


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

    def shares(self) -> dict[str, float]:
        """Precision, recall and F1 by name."""
        return {"precision": self.precision, "recall": self.recall, "f1": self.f1}

    def values(self) -> dict[str, float]:
        """Precision, recall, F1 and support (how many were to be found), by name."""
        return {**self.shares(), "support": float(self.expected)}

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
    found = [tally.shares() for tally in tallies if tally.occurs]
    return {
        name: math.fsum(each[name] for each in found) / len(found) if found else math.nan
        for name in ("precision", "recall", "f1")
    }


def label_values(tallies: Mapping[str, ConfusionCounts]) -> dict[str, float]:
    """The values of each label: ``label/<name>/precision``, ``/recall``, ``/f1``, ``/support``."""
    return {
        f"label/{label}/{name}": value
        for label, tally in tallies.items()
        for name, value in tally.values().items()
    }


def tally_table(tallies: Mapping[str, ConfusionCounts]) -> str:
    """A line per label; ``-`` where it has no value.

    Example:
        >>> print(tally_table({"ham": ConfusionCounts(2, 3, 4), "spam": ConfusionCounts(0, 0, 0)}))
        label  precision  recall      f1  support
        ham       66.7 %  50.0 %  57.1 %        4
        spam           -       -       -        0
    """
    rows = [
        [label, *(format_value(title, value) for title, value in tally.values().items())]
        for label, tally in tallies.items()
    ]
    return text_table(["label", "precision", "recall", "f1", "support"], rows)


class LabelCounted(Counted):
    """Base of metrics that count what was right, predicted and expected of each label."""

    @abstractmethod
    def tallies(self) -> dict[str, ConfusionCounts]:
        """What was counted of each label."""

    def table(self) -> str:
        """Precision, recall, F1 and support by label, as text."""
        return tally_table(self.tallies())

    def _tallies(self, labels: Mapping[str, str]) -> dict[str, ConfusionCounts]:
        """What was counted of each label, by the name under which it was counted."""
        groups = [self.counts(side) for side in ConfusionCounts._fields]
        return {
            label: ConfusionCounts(*(group.get(name, 0) for group in groups))
            for label, name in labels.items()
        }
