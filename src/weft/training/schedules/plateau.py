"""The plateau schedule."""

import math
from collections.abc import Sequence
from functools import lru_cache

from typing_extensions import override

from weft.config import registries
from weft.config.validators import require
from weft.errors import UserError
from weft.training.schedules.schedule import Schedule

__all__ = ["Plateau"]


@registries.schedules.register("plateau")
class Plateau(Schedule):
    """Falls by the factor ``decay`` after ``patience`` evaluations without a better value.

    The value is that of ``trainer.selection.metric`` on ``valid_data``; what the selection saves of
    it is all there is to know, so a resumed run has the rate of the undisturbed one. A NaN is not
    better than anything.

    Example:
        >>> schedule = Plateau.Config(patience=2).build()
        >>> [schedule(9, None, losses) for losses in ([], [3.0, 2.0], [3.0, 2.0, 2.1, 2.0])]
        [1.0, 1.0, 0.5]
    """

    class Config(Schedule.Config):
        """Settings of the plateau schedule."""

        decay: float = 0.5
        """Factor on the rate each time."""
        patience: int = 2
        """Evaluations without a better value after which the rate falls."""
        min_delta: float = 0.0
        """Change smaller than this does not count as better."""
        cooldown: int = 0
        """Evaluations after a fall that are not counted."""
        end: float = 0.0
        """Factor below which the rate does not fall."""

        @override
        def __post_init__(self) -> None:
            """Refuses a rate that falls always, or never."""
            super().__post_init__()
            if not 0 < self.decay < 1:
                raise UserError(
                    f"lr_scheduler.decay must be above 0 and below 1, but is {self.decay}."
                )
            require(
                self, "lr_scheduler", sizes=["patience"], not_negative=["min_delta", "cooldown"]
            )

    config: Config

    @override
    def check(self, total: int | None, *, measured: bool) -> None:
        """Refuses a run in which nothing is measured."""
        if not measured:
            raise UserError(
                "The plateau schedule follows the selected metric on valid_data, and there is no "
                "valid_data. Define valid_data, or choose lr_scheduler.type=inverse_square_root."
            )

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """The factor to the power of the plateaus so far."""
        return max(self.config.end, self.config.decay ** plateaus(self.config, tuple(history)))


@lru_cache(maxsize=1)  # the history changes once an evaluation, and is asked for at every step
def plateaus(config: Plateau.Config, history: tuple[float, ...]) -> int:
    """How often patience was spent over a history, of which lower is better."""
    best, waited, cooling, found = math.inf, 0, 0, 0
    for value in history:
        better = value < best - config.min_delta
        best, waited = (value, 0) if better else (best, waited + 1)
        if cooling > 0:
            cooling, waited = cooling - 1, 0
        if waited >= config.patience:
            found, waited, cooling = found + 1, 0, config.cooldown
    return found
