"""The exponential schedule."""

from collections.abc import Sequence

from typing_extensions import override

from weft.config import registries
from weft.config.limits import require
from weft.errors import UserError
from weft.training.schedules.schedule import Schedule

__all__ = ["Exponential"]


@registries.schedules.register("exponential")
class Exponential(Schedule):
    """Falls by the factor ``decay`` every ``every`` steps, smoothly or in steps; needs no length.

    Example:
        >>> schedule = Exponential.Config(decay=0.5, every=100).build()
        >>> [schedule(step, None) for step in (1, 101, 201)]
        [1.0, 0.5, 0.25]
    """

    class Config(Schedule.Config):
        """Settings of the exponential schedule."""

        decay: float = 0.5
        """Factor on the rate after every so many steps."""
        every: int = 1000
        """Steps after which the rate has fallen by that factor."""
        staircase: bool = False
        """Whether it falls only then, at once."""
        end: float = 0.0
        """Factor below which the rate does not fall."""

        @override
        def __post_init__(self) -> None:
            """Refuses a curve that does not fall."""
            super().__post_init__()
            if not 0 < self.decay <= 1:
                raise UserError(
                    f"lr_scheduler.decay must be above 0 and at most 1, but is {self.decay}."
                )
            require(self, "lr_scheduler", sizes=["every"])

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """On the curve, or on its step."""
        taken, every = step - 1 - self.config.warmup_steps, self.config.every
        times = taken // every if self.config.staircase else taken / every
        return max(self.config.end, self.config.decay**times)
