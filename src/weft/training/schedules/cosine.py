"""The cosine schedule."""

import math
from collections.abc import Sequence

from typing_extensions import override

from weft.config import registries
from weft.training.schedules.schedule import Schedule

__all__ = ["Cosine"]


@registries.schedules.register("cosine")
class Cosine(Schedule):
    """Falls along half a cosine to ``end`` (Loshchilov and Hutter 2017, without restarts).

    Example:
        >>> schedule = Cosine.Config().build()
        >>> [round(schedule(step, 4), 3) for step in (1, 3, 5)]
        [1.0, 0.5, 0.0]
    """

    class Config(Schedule.Config):
        """Settings of the cosine schedule."""

        end: float = 0.0
        """Factor that the curve reaches after the last step."""

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """On the curve."""
        height = (1 - math.cos(math.pi * self._left(step, total))) / 2
        return self.config.end + (1 - self.config.end) * height
