"""Learning-rate schedules: a linear warm-up, then the shape of the subclass.

A schedule gives the factor on each parameter group's own rate for the next step. It is a pure
function of progress, so it has no state to save. Any callable with the signature of
:meth:`Schedule.__call__` serves as the ingredient ``lr_scheduler``.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import ClassVar

from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.training import registries


class Schedule(Component):
    """Base of the schedules: a linear warm-up, then the shape of the subclass."""

    class Config(BaseConfig):
        warmup_steps: int = 0
        """Steps over which the rate grows linearly from near 0 to its peak."""
        warmup_ratio: float = 0.0
        """The warm-up as a share of the run's steps, instead of ``warmup_steps``."""

        limits: ClassVar[Mapping[str, Sequence[str]]] = {}
        """Conditions on a subclass's own numbers, as keywords of ``require``."""
        factors: ClassVar[Sequence[str]] = ("end",)
        """Settings that must be from 0 to 1."""

        def __post_init__(self) -> None:
            require(self, "lr_scheduler", not_negative=["warmup_steps"], shares=["warmup_ratio"])
            if self.warmup_steps and self.warmup_ratio:
                raise UserError(
                    f"lr_scheduler.warmup_steps is {self.warmup_steps}, and "
                    f"lr_scheduler.warmup_ratio is {self.warmup_ratio}: set one of them to 0."
                )
            for name in self.factors:
                if not 0 <= (value := getattr(self, name, 0.0)) <= 1:
                    raise UserError(f"lr_scheduler.{name} must be from 0 to 1, but is {value}.")
            require(self, "lr_scheduler", **self.limits)

    length_free: ClassVar[str] = "choose lr_scheduler.type=inverse_square_root"
    """Advice for a run whose length is not known."""

    config: Config

    def __init__(self, config: Config) -> None:
        self.config = config

    def __call__(self, step: int, total: int | None, history: Sequence[float] = ()) -> float:
        """The factor, from 0 to 1, for the step about to be taken, from 1.

        ``total`` are the steps of the whole run, None where its length is not known in steps;
        ``history`` the values of the selected metric so far, oldest first, negated where higher is
        better, so lower is better for any.
        """
        if step <= (warmup := self.warmup(total)):
            return step / warmup
        return self.after_warmup(step, total, history)

    def warmup(self, total: int | None) -> int:
        """Steps of the warm-up in a run of so many."""
        if not self.config.warmup_ratio:
            return self.config.warmup_steps
        return math.ceil(self.config.warmup_ratio * self._length(total))

    @abstractmethod
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        """The factor for a step after the warm-up."""

    def check(self, total: int | None, *, measured: bool) -> None:
        """Refuses a run that lacks what the shape after the warm-up needs."""
        if total is None:
            self.after_warmup(self.warmup(None) + 1, None, ())

    def _left(self, step: int, total: int | None) -> float:
        length = self._length(total)
        span = max(1, length - self.warmup(total))
        return min(1.0, max(0.0, (length - step + 1) / span))

    def _length(self, total: int | None) -> int:
        """Steps of the whole run; refuses one whose length is not known."""
        if total is not None:
            return total
        name = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", type(self).__name__).lower()
        free = self.length_free
        if self.config.warmup_ratio:
            name, free = f"{name} (warmup_ratio)", "lr_scheduler.warmup_steps in place of the share"
        raise UserError(
            f"The {name} schedule needs the length of the run in steps; it is not known. "
            f"Set trainer.max_steps or trainer.max_epochs, or {free}."
        )


@registries.schedules.register("constant")
class Constant(Schedule):
    """The peak rate throughout."""

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        return 1.0


@registries.schedules.register("linear")
class Linear(Schedule):
    """Falls in a straight line to ``end`` at the end of the run."""

    class Config(Schedule.Config):
        end: float = 0.0
        """Factor on the rate that the line reaches after the last step."""

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        return self.config.end + (1 - self.config.end) * self._left(step, total)


@registries.schedules.register("cosine")
class Cosine(Schedule):
    """Falls along half a cosine to ``end`` (Loshchilov and Hutter 2017, without restarts)."""

    class Config(Schedule.Config):
        end: float = 0.0
        """Factor that the curve reaches after the last step."""

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        height = (1 - math.cos(math.pi * self._left(step, total))) / 2
        return self.config.end + (1 - self.config.end) * height


@registries.schedules.register("inverse_square_root")
class InverseSquareRoot(Schedule):
    """Falls with the square root of the step: sqrt(warmup / step) after the warm-up.

    From Vaswani et al. 2017.

    It needs no length, so a run can be lengthened without changing what was trained. With
    ``cooldown`` the last share of a run of known length falls in a straight line to 0, which is
    worth having where the length is known.
    """

    class Config(Schedule.Config):
        warmup_steps: int = 400
        """Steps over which the rate grows linearly from near 0 to its peak."""
        cooldown: float = 0.0
        """Share of the run's end over which the rate falls linearly to 0 (Hägele et al. 2024)."""

        factors = ("cooldown",)

    length_free: ClassVar[str] = "set lr_scheduler.cooldown=0"

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        factor = math.sqrt(max(1, self.warmup(total)) / step)
        if self.config.cooldown > 0:
            factor *= min(1.0, self._left(step, total) / self.config.cooldown)
        return factor


@registries.schedules.register("plateau")
class Plateau(Schedule):
    """Falls by the factor ``decay`` after ``patience`` evaluations without a better value.

    The value is that of ``trainer.selection.metric`` on ``valid_data``; what the selection saves of
    it is all there is to know, so a resumed run has the rate of the undisturbed one. A NaN is not
    better than anything.
    """

    class Config(Schedule.Config):
        decay: float = 0.5
        """Factor on the rate at each fall."""
        patience: int = 2
        """Evaluations without a better value after which the rate falls."""
        min_delta: float = 0.0
        """Changes of no more than this do not count as better."""
        cooldown: int = 0
        """Evaluations after a fall that are not counted."""
        end: float = 0.0
        """Lowest factor on the rate."""

        limits: ClassVar = {"sizes": ["patience"], "not_negative": ["min_delta", "cooldown"]}

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            if not 0 < self.decay < 1:
                raise UserError(
                    f"lr_scheduler.decay must be above 0 and below 1, but is {self.decay}."
                )

    config: Config

    @override
    def check(self, total: int | None, *, measured: bool) -> None:
        if not measured:
            raise UserError(
                "The plateau schedule follows the selected metric on valid_data, and there is no "
                "valid_data. Define valid_data, or choose lr_scheduler.type=inverse_square_root."
            )

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
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
