"""The step schedule."""

from bisect import bisect_left
from collections.abc import Sequence

from typing_extensions import override

from weft.config import registries
from weft.errors import UserError
from weft.training.schedules.schedule import Schedule

__all__ = ["Step"]


@registries.schedules.register("step")
class Step(Schedule):
    """Falls by the factor ``decay`` after each of the steps ``milestones``; needs no length.

    Example:
        >>> schedule = Step.Config(milestones=(100, 200)).build()
        >>> [round(schedule(step, None), 3) for step in (100, 101, 200, 201)]
        [1.0, 0.1, 0.1, 0.01]
    """

    class Config(Schedule.Config):
        """Settings of the step schedule."""

        milestones: tuple[int, ...]
        """Steps after which the rate falls, counted from the start of the run, each once."""
        decay: float = 0.1
        """Factor on the rate at each."""

        @override
        def __post_init__(self) -> None:
            """Refuses milestones that are none, or a rate that does not fall."""
            super().__post_init__()
            rising = all(
                a < b for a, b in zip((0, *self.milestones), self.milestones, strict=False)
            )
            if not self.milestones or not rising:
                raise UserError(
                    "lr_scheduler.milestones must be steps that grow, the first at least 1, "
                    f"but is {list(self.milestones)}."
                )
            if not 0 < self.decay <= 1:
                raise UserError(
                    f"lr_scheduler.decay must be above 0 and at most 1, but is {self.decay}."
                )

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """The factor to the power of the milestones that are passed."""
        factor: float = self.config.decay ** bisect_left(self.config.milestones, step)
        return factor
