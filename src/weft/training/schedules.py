"""Learning-rate schedules: pure functions of progress, so there is no schedule state to save.

A schedule gives the factor on each parameter group's own rate for the next step. Any callable with
the signature of :meth:`Schedule.__call__` serves as the ingredient ``lr_scheduler``.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import UserError

__all__ = ["Constant", "Cosine", "InverseSquareRoot", "Linear", "Schedule"]


class Schedule(Component):
    """Base of the schedules: a linear warm-up, then the shape of the subclass."""

    class Config(BaseConfig):
        """Settings every schedule has."""

        warmup_steps: int = 0
        """Steps over which the rate grows linearly from near 0 to its peak."""

        def __post_init__(self) -> None:
            """Refuses a warm-up of fewer steps than none."""
            if self.warmup_steps < 0:
                raise UserError(
                    f"lr_scheduler.warmup_steps must be at least 0, but is {self.warmup_steps}."
                )

    length_free: ClassVar[str] = "choose lr_scheduler.type=inverse_square_root"
    """What to do where the schedule needs a length and the run has none."""

    config: Config

    def __init__(self, config: Config) -> None:
        self.config = config

    def __call__(self, step: int, total: int | None, history: Sequence[float] = ()) -> float:
        """The factor for one step.

        Args:
            step: The step about to be taken, from 1.
            total: Steps of the whole run; None where its length is not known in steps.
            history: Values of the selected metric so far, oldest first.

        Returns:
            The factor, in [0, 1].
        """
        if step <= self.config.warmup_steps:
            return step / self.config.warmup_steps
        return self.after_warmup(step, total, history)

    @abstractmethod
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """The factor for a step after the warm-up."""

    def check(self, total: int | None) -> None:
        """Refuses a run whose length is not known, where the shape after the warm-up needs it."""
        if total is None:
            self.after_warmup(self.config.warmup_steps + 1, None, ())

    def _left(self, step: int, total: int | None) -> float:
        """Share of the run after the warm-up that is still to come, the step at hand included."""
        if total is None:
            name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()
            raise UserError(
                f"The {name} schedule needs the length of the run in steps; it is not known. "
                f"Set trainer.max_steps or trainer.max_epochs, or {self.length_free}."
            )
        span = max(1, total - self.config.warmup_steps)
        return min(1.0, max(0.0, (total - step + 1) / span))


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


@registries.schedules.register("inverse_square_root")
class InverseSquareRoot(Schedule):
    """Falls with the square root of the step: sqrt(warmup / step) after the warm-up.

    From Vaswani et al. 2017.

    It needs no length, so a run can be lengthened without changing what was trained. With
    ``cooldown`` the last share of a run of known length falls in a straight line to 0, which is
    worth having where the length is known.

    Example:
        >>> schedule = InverseSquareRoot.Config(warmup_steps=400).build()
        >>> [schedule(step, None) for step in (200, 400, 1600)]
        [0.5, 1.0, 0.5]
    """

    class Config(Schedule.Config):
        """Settings of the inverse-square-root schedule."""

        warmup_steps: int = 400
        """Steps over which the rate grows linearly from near 0 to its peak."""
        cooldown: float = 0.0
        """Share of the run's end over which the rate falls linearly to 0 (Hägele et al. 2024)."""

        @override
        def __post_init__(self) -> None:
            """Refuses what is no share too."""
            super().__post_init__()
            if not 0 <= self.cooldown <= 1:
                raise UserError(
                    f"lr_scheduler.cooldown must be from 0 to 1, but is {self.cooldown}."
                )

    length_free: ClassVar[str] = "set lr_scheduler.cooldown=0"

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """On the curve, and in the cooldown below it."""
        factor = math.sqrt(max(1, self.config.warmup_steps) / step)
        if self.config.cooldown > 0:
            factor *= min(1.0, self._left(step, total) / self.config.cooldown)
        return factor
