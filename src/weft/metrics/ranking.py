"""Pairwise ranking: whether a query's right answer scores higher than a wrong one."""

import math
from collections.abc import Mapping, Sequence
from typing import final

from typing_extensions import override

from weft.metrics.checks import aligned
from weft.metrics.metric import Direction
from weft.metrics.streaming import Averaged

__all__ = ["Ranking"]


@final
class Ranking(Averaged):
    """The scores of a right and of a wrong answer, one of each a row.

    Values: ``ranking_accuracy``, the share of rows in which the right one scores higher (a tie is
    wrong); ``avg_score_difference``, the mean of right minus wrong; ``num_examples``, the rows.

    Example:
        >>> metric = Ranking()
        >>> metric.update([0.75, 0.5, 0.25], [0.25, 0.5, 0.0])
        >>> {name: round(value, 3) for name, value in metric.compute().items()}
        {'ranking_accuracy': 0.667, 'avg_score_difference': 0.25, 'num_examples': 3.0}
    """

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("ranking_accuracy", "avg_score_difference"), "higher"))

    @override
    def update(self, positive_scores: Sequence[float], negative_scores: Sequence[float]) -> None:
        """Adds the scores of each row's right and wrong answer; none where their lengths differ."""
        pairs = [(float(a), float(b)) for a, b in aligned(self, positive_scores, negative_scores)]
        for positive, negative in pairs:
            self.add("ranking_accuracy", positive > negative)
            self.add("avg_score_difference", positive, -negative)

    @override
    def compute(self) -> dict[str, float]:
        rows = self._means["ranking_accuracy"].count
        return {**super().compute(), "num_examples": rows or math.nan}

    @override
    def directions(self) -> Mapping[str, Direction]:
        return {**super().directions(), "num_examples": "higher"}
