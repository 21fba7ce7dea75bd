"""The one-cycle schedule."""

import math
from collections.abc import Sequence

from typing_extensions import override

from weft.config import registries
from weft.errors import UserError
from weft.training.schedules.schedule import Schedule

__all__ = ["OneCycle"]


@registries.schedules.register("one_cycle")
class OneCycle(Schedule):
    """Rises from ``start`` to the peak and falls to ``end`` at the last step, both along a cosine.

    From Smith and Topin 2018, in the two phases of Howard's fastai and torch's ``OneCycleLR``; the
    momentum is left as it is.

    Example:
        >>> schedule = OneCycle.Config(rise=0.5).build()
        >>> [round(schedule(step, 10), 3) for step in (1, 3, 5, 7, 10)]
        [0.04, 0.52, 1.0, 0.655, 0.0]
    """

    class Config(Schedule.Config):
        """Settings of the one-cycle schedule."""

        warmup_steps: int = 0
        """Steps of the rise; 0 takes the share ``rise`` of the run."""
        rise: float = 0.3
        """Share of the run over which the rate rises to its peak."""
        start: float = 0.04
        """Factor of the first step (1 / 25)."""
        end: float = 4e-6
        """Factor of the last step (a ten-thousandth of the first)."""

        @override
        def __post_init__(self) -> None:
            """Refuses what is no share."""
            super().__post_init__()
            for name in ("rise", "start"):
                if not 0 <= (value := getattr(self, name)) <= 1:
                    raise UserError(f"lr_scheduler.{name} must be from 0 to 1, but is {value}.")

    config: Config

    @override
    def __call__(self, step: int, total: int | None, history: Sequence[float] = ()) -> float:
        """The factor for one step; its rise is the warm-up."""
        return self.after_warmup(step, total, history)

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """On the way up, or on the way down."""
        length = self._length(total)
        peak = min(length, max(1.0, self.config.warmup_steps or self.config.rise * length))
        if step < peak:
            return _between(self.config.start, 1.0, (step - 1) / (peak - 1))
        down = 1.0 if length == peak else (step - peak) / (length - peak)
        return _between(1.0, self.config.end, min(1.0, down)) if step > peak else 1.0


def _between(one: float, other: float, share: float) -> float:
    """Half a cosine from one to the other."""
    return other + (one - other) * (1 + math.cos(math.pi * share)) / 2
