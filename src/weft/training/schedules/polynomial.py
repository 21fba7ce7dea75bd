"""The polynomial schedule."""

from collections.abc import Sequence

from typing_extensions import override

from weft.config import registries
from weft.config.limits import require
from weft.training.schedules.schedule import Schedule

__all__ = ["Polynomial"]


@registries.schedules.register("polynomial")
class Polynomial(Schedule):
    """Falls as a power of the share of the run that is left, to ``end`` at the end.

    ``end + (1 - end) * left ** power``: power 1 is the straight line, 2 falls early, 0.5 late.

    Example:
        >>> schedule = Polynomial.Config(power=2.0).build()
        >>> [schedule(step, 4) for step in (1, 2, 3, 4)]
        [1.0, 0.5625, 0.25, 0.0625]
    """

    class Config(Schedule.Config):
        """Settings of the polynomial schedule."""

        power: float = 2.0
        """Power of the share that is left."""
        end: float = 0.0
        """Factor that the curve reaches after the last step."""

        @override
        def __post_init__(self) -> None:
            """Refuses a power with which the rate never falls, or starts at its end."""
            super().__post_init__()
            require(self, "lr_scheduler", positive=["power"])

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """On the curve."""
        left: float = self._left(step, total) ** self.config.power
        return self.config.end + (1 - self.config.end) * left
