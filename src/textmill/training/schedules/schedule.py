"""The base of the schedules: a linear warm-up, then the shape of the subclass.

A schedule gives the factor on each parameter group's own rate for the next step. Any callable with
the signature of :meth:`Schedule.__call__` serves as the ingredient ``lr_scheduler``.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError


class Schedule(Component):
    """Base of the schedules: a linear warm-up, then the shape of the subclass."""

    class Config(BaseConfig):
        """Settings every schedule has."""

        warmup_steps: int = 0
        """Steps over which the rate grows linearly from near 0 to its peak."""
        warmup_ratio: float = 0.0
        """The same as a share of the run's steps, in place of ``warmup_steps``, which is 0 then."""

        limits: ClassVar[Mapping[str, Sequence[str]]] = {}
        """A subclass's own numbers by what they must be, as ``require`` has it."""
        factors: ClassVar[Sequence[str]] = ("end",)
        """Those that must be from 0 to 1."""

        def __post_init__(self) -> None:
            """Refuses numbers of which no rate of learning comes."""
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
    """What to do where the schedule needs a length and the run has none."""

    config: Config

    def __init__(self, config: Config) -> None:
        self.config = config

    def __call__(self, step: int, total: int | None, history: Sequence[float] = ()) -> float:
        """The factor for one step.

        Args:
            step: The step about to be taken, from 1.
            total: Steps of the whole run; None where its length is not known in steps.
            history: Values of the selected metric so far, oldest first; negated where higher is
                better, so lower is better for any.

        Returns:
            The factor, in [0, 1].
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
        """Refuses a run that lacks what the shape after the warm-up needs.

        Args:
            total: Steps of the whole run; None where its length is not known in steps.
            measured: Whether the run has ``valid_data``, and so a history of the selected metric.
        """
        if total is None:
            self.after_warmup(self.warmup(None) + 1, None, ())

    def _left(self, step: int, total: int | None) -> float:
        """Share of the run after the warm-up that is still to come, the step at hand included."""
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
