"""How far a measured value may be from that of all rows there are: 95 % intervals.

Sources: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference";
Efron 1979, "Bootstrap Methods: Another Look at the Jackknife" (percentiles).
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

NORMAL = 1.959963984540054
"""The 97.5 % point of the normal distribution."""
RESAMPLES = 1000


def wilson(right: float, rows: int) -> tuple[float, float]:
    r"""The interval of a share :math:`p` of :math:`n` rows, right or not.

    .. math:: \frac{p + z^2/2n \pm z\sqrt{p(1-p)/n + z^2/4n^2}}{1 + z^2/n}
    """
    share, extra = right / rows, NORMAL**2 / rows
    half = NORMAL * math.sqrt(share * (1 - share) / rows + extra / (4 * rows))
    low, high = ((share + extra / 2 + by) / (1 + extra) for by in (-half, half))
    return max(0.0, low), min(1.0, high)


def bootstrap(numerators: Sequence[float], denominators: Sequence[float]) -> tuple[float, float]:
    """The interval of a ratio of sums over rows.

    The mean of a value of rows has denominators of 1; F1 has those that are predicted and wanted.
    """
    parts = np.array([numerators, denominators], dtype=np.float64).T
    return _drawn(parts, lambda sums: sums[0] / sums[1] if sums[1] else math.nan)


def bleu(texts: Sequence[str], references: Sequence[str]) -> tuple[float, tuple[float, float]]:
    """BLEU as published (sacrebleu's defaults), from 0 to 100, and its interval."""
    from sacrebleu.metrics.bleu import BLEU

    scorer = BLEU(force=True)
    rows = [scorer.corpus_score([a], [[b]]) for a, b in zip(texts, references, strict=True)]
    parts = np.array([[*row.counts, *row.totals, row.sys_len, row.ref_len] for row in rows])

    def score(sums: NDArray[Any]) -> float:
        numbers = [round(number) for number in sums.tolist()]
        return float(BLEU.compute_bleu(numbers[:4], numbers[4:8], *numbers[8:]).score)

    return score(parts.sum(axis=0)), _drawn(parts, score)


def _drawn(parts: NDArray[Any], value: Callable[[NDArray[Any]], float]) -> tuple[float, float]:
    """The interval of a value of sums over rows, which are drawn 1000 times with a fixed seed."""
    random, count = np.random.default_rng(1), len(parts)
    drawn = (parts[random.integers(0, count, count)].sum(axis=0) for _ in range(RESAMPLES))
    known = [each for each in map(value, drawn) if not math.isnan(each)]
    low, high = np.percentile(known, (2.5, 97.5)) if known else (math.nan, math.nan)
    return float(low), float(high)
