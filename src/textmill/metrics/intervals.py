"""How far a measured value may be from that of all rows there are: 95 % intervals.

Sources: Wilson 1927, "Probable Inference, the Law of Succession, and Statistical Inference";
Efron 1979, "Bootstrap Methods: Another Look at the Jackknife" (percentiles).
"""

import math
from collections.abc import Sequence

import numpy as np

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
    """The interval of a ratio of sums over rows, by drawing the rows 1000 times with a fixed seed.

    The mean of a value of rows has denominators of 1; F1 has those that are predicted and wanted.
    """
    parts, random = np.array([numerators, denominators], dtype=np.float64), np.random.default_rng(1)
    count = parts.shape[1]
    sums = [parts[:, random.integers(0, count, count)].sum(axis=1) for _ in range(RESAMPLES)]
    ratios = [above / below for above, below in sums if below]
    low, high = np.percentile(ratios, (2.5, 97.5)) if ratios else (math.nan, math.nan)
    return float(low), float(high)
