"""Pairwise ranking: whether a query's right answer scores higher than a wrong one."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, final

from typing_extensions import override

from weft.metrics.checks import aligned, check_state
from weft.metrics.metric import Direction, Metric, State
from weft.metrics.streaming import Mean

__all__ = ["Ranking"]


@final
class Ranking(Metric):
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
        self.reset()

    @override
    def reset(self) -> None:
        self._right, self._difference = Mean("right"), Mean("difference")
        self._rows = 0

    @override
    def update(self, positive_scores: Sequence[float], negative_scores: Sequence[float]) -> None:
        """Adds rows.

        Args:
            positive_scores: The score of each row's right answer.
            negative_scores: The score of each row's wrong answer.

        Raises:
            MetricError: The lengths differ; nothing was added then.
        """
        pairs = [(float(a), float(b)) for a, b in aligned(self, positive_scores, negative_scores)]
        for positive, negative in pairs:
            self._right.update(int(positive > negative), 1)
            self._difference.update(positive, 1)
            self._difference.update(-negative, 0)
        self._rows += len(pairs)

    @override
    def compute(self) -> dict[str, float]:
        return {
            "ranking_accuracy": self._right.quotient(),
            "avg_score_difference": self._difference.quotient(),
            "num_examples": float(self._rows) if self._rows else math.nan,
        }

    @override
    def directions(self) -> Mapping[str, Direction]:
        return dict.fromkeys(self.compute(), "higher")

    @override
    def state_dict(self) -> State:
        return {
            "settings": {},
            "rows": self._rows,
            "right": self._right.state_dict(),
            "difference": self._difference.state_dict(),
        }

    @override
    def merge_state(self, state: Mapping[str, Any]) -> None:
        check_state(self, state, {}, "rows", "right", "difference")
        self._rows += state["rows"]
        self._right.merge_state(state["right"])
        self._difference.merge_state(state["difference"])
