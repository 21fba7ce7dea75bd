"""Regression: squared and absolute error, explained variance, correlations of values and ranks."""

import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.metrics.metric import Count, Direction, Metric, MetricError, aligned, nan_without
from textmill.metrics.streaming import rounded

_SUMS = ("gold", "predicted", "gold_gold", "predicted_predicted", "gold_predicted", "absolute")


class Regression(Metric):
    """One number a row, predicted and right.

    Values: ``mse`` and ``mae``, the means of the squared and of the absolute error; ``r2``, one
    minus the squared error over that of the mean; ``pearson``, the correlation; ``spearman``, the
    correlation of the ranks, equal numbers sharing the mean of theirs, as in SciPy. Correlations of
    fewer than two distinct numbers, and ``r2`` where all right ones are equal, are NaN. ``only``
    names the values that mean something where predictions are in other units.

    Sums are exact: the result is the same in every order, and rounded once. A prediction that is no
    finite number makes all values NaN, and ``details`` say so.
    """

    def __init__(self, *, only: Collection[str] | None = None) -> None:
        self.only = only
        self._rows: Count = 0
        self._not_finite = 0
        self._sums = dict.fromkeys(_SUMS, Fraction(0))
        self._kept = (array("d"), array("d"))  # right numbers, predictions

    @override
    def update(
        self, gold: Sequence[float] | NDArray[Any], predicted: Sequence[float] | NDArray[Any]
    ) -> None:
        """Adds rows: the right number of each, and the one that it was given."""
        pairs = [(float(a), float(b)) for a, b in aligned(self, list(gold), list(predicted))]
        for row, (right, _) in enumerate(pairs):
            if not math.isfinite(right):
                raise MetricError(
                    f"The right number of row {row + 1} of {len(pairs)} must be finite, "
                    f"but is {right}."
                )
        finite = [pair for pair in pairs if math.isfinite(pair[1])]
        self._rows += len(pairs) * self.weight
        self._not_finite += len(pairs) - len(finite)
        for right, given in finite:
            a, b = Fraction(right), Fraction(given)
            terms = (a, b, a * a, b * b, a * b, abs(a - b))
            for name, term in zip(_SUMS, terms, strict=True):
                self._sums[name] += term * self.weight
            self._kept[0].append(right)
            self._kept[1].append(given)

    @override
    def compute(self) -> dict[str, float]:
        rows, total = self._rows or 1, self._sums
        squared = total["gold_gold"] - 2 * total["gold_predicted"] + total["predicted_predicted"]
        spread = total["gold_gold"] - total["gold"] ** 2 / rows
        values = {
            "mse": rounded(squared / rows),
            "mae": rounded(total["absolute"] / rows),
            "r2": rounded(1 - squared / spread) if spread else math.nan,
            "pearson": _correlation(rows, total),
            "spearman": self._spearman(),
        }
        wanted = {name: v for name, v in values.items() if self.only is None or name in self.only}
        return nan_without(0 if self._not_finite else self._rows, wanted)

    @override
    def directions(self) -> Mapping[str, Direction]:
        return {name: "lower" if name in ("mse", "mae") else "higher" for name in self.compute()}

    @override
    def errors(self) -> dict[str, float]:
        """Those of the correlations: ``(1 - r^2) / sqrt(n - 1)``."""
        root = math.sqrt(max(self._rows - 1, 1))
        known = {n: v for n, v in self.compute().items() if n in ("pearson", "spearman")}
        return {n: 0.0 if math.isnan(v) else (1 - v * v) / root for n, v in known.items()}

    @override
    def details(self) -> dict[str, str]:
        if self._not_finite:
            every = self._not_finite + len(self._kept[0])
            text = f"{self._not_finite:,} of {every:,} predictions are not finite"
            return dict.fromkeys(self.directions(), text)
        return {}

    def _spearman(self) -> float:
        # Ranks times two are whole numbers, whose sums of products are exact.
        gold, predicted = (_doubled_ranks(np.array(column)) for column in self._kept)
        products = (gold, predicted, gold * gold, predicted * predicted, gold * predicted)
        sums = [Fraction(sum(product.tolist())) for product in products]
        return _correlation(len(gold), dict(zip(_SUMS, sums, strict=False)))


def _doubled_ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    order = np.sort(values)
    below = np.searchsorted(order, values, "left")
    ranks: NDArray[np.int64] = below + np.searchsorted(order, values, "right") + 1
    return ranks


def _correlation(rows: Count, total: Mapping[str, Fraction]) -> float:
    gold = rows * total["gold_gold"] - total["gold"] ** 2
    predicted = rows * total["predicted_predicted"] - total["predicted"] ** 2
    both = rows * total["gold_predicted"] - total["gold"] * total["predicted"]
    if not gold or not predicted:
        return math.nan
    # The square is exact and at most 1: no overflow, and rounded in two places only.
    size = math.sqrt(both * both / (gold * predicted))
    return size if both > 0 else -size
