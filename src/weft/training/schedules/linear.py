"""The linear schedule."""

from collections.abc import Sequence

from typing_extensions import override

from weft.config import registries
from weft.training.schedules.schedule import Schedule

__all__ = ["Linear"]


@registries.schedules.register("linear")
class Linear(Schedule):
    """Falls in a straight line to ``end`` at the end of the run.

    Example:
        >>> schedule = Linear.Config().build()
        >>> [schedule(step, 4) for step in (1, 2, 3, 4)]
        [1.0, 0.75, 0.5, 0.25]
    """

    class Config(Schedule.Config):
        """Settings of the linear schedule."""

        end: float = 0.0
        """Factor that the line reaches after the last step."""

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """On the line."""
        return self.config.end + (1 - self.config.end) * self._left(step, total)
