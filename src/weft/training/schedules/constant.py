"""The constant schedule."""

from collections.abc import Sequence

from typing_extensions import override

from weft.config import registries
from weft.training.schedules.schedule import Schedule

__all__ = ["Constant"]


@registries.schedules.register("constant")
class Constant(Schedule):
    """The peak rate throughout.

    Example:
        >>> schedule = Constant.Config(warmup_steps=4).build()
        >>> [schedule(step, None) for step in (1, 2, 4, 100)]
        [0.25, 0.5, 1.0, 1.0]
    """

    class Config(Schedule.Config):
        """Settings of the constant schedule."""

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """Always 1."""
        return 1.0
