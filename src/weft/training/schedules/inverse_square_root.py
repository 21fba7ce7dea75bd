"""The inverse-square-root schedule."""

import math
from collections.abc import Sequence
from typing import ClassVar

from typing_extensions import override

from weft.config import registries
from weft.errors import UserError
from weft.training.schedules.schedule import Schedule

__all__ = ["InverseSquareRoot"]


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
