"""Learning-rate schedules: a linear warm-up, then the shape of the subclass.

A schedule gives the factor on each parameter group's own rate for the next step. It is a pure
function of progress, so it has no state to save. Any callable with the signature of
:meth:`Schedule.__call__` serves as the ingredient ``lr_scheduler``, and so does a scheduler of
torch's, which moves the rates itself.
"""

import math
import re
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, ClassVar

from torch.optim import Optimizer
from torch.optim.lr_scheduler import LRScheduler
from typing_extensions import override

from textmill.checkpoint.parts import Stateful
from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import TextmillError, UserError
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
        """Factor on the rate after the last step."""

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        return self.config.end + (1 - self.config.end) * self.height(self._left(step, total))

    def height(self, left: float) -> float:
        """The share of the whole fall that is left, by that of the steps, both from 0 to 1."""
        return left


@registries.schedules.register("cosine")
class Cosine(Linear):
    """Falls along half a cosine to ``end`` (Loshchilov and Hutter 2017, without restarts)."""

    @override
    def height(self, left: float) -> float:
        return (1 - math.cos(math.pi * left)) / 2


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


@registries.schedules.register("exponential")
class Exponential(Schedule):
    """Falls by the factor ``decay`` over each ``period`` of steps after the peak, evenly."""

    class Config(Schedule.Config):
        decay: float = 0.95
        """Factor on the rate over each period."""
        period: int = 100
        """Steps over which the rate falls by it once."""

        factors = ("decay",)
        limits: ClassVar = {"sizes": ["period"]}

    config: Config

    @override
    def after_warmup(self, step: int, total: int | None, history: Sequence[float]) -> float:
        peak = max(1, self.warmup(total))
        return float(self.config.decay ** ((step - peak) / self.config.period))


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
        cooldown: int = 0
        """Evaluations after a fall that are not counted."""
        end: float = 0.0
        """Lowest factor on the rate."""

        limits: ClassVar = {"sizes": ["patience"], "not_negative": ["cooldown"]}

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
        better = value < best
        best, waited = (value, 0) if better else (best, waited + 1)
        if cooling > 0:
            cooling, waited = cooling - 1, 0
        if waited >= config.patience:
            found, waited, cooling = found + 1, 0, config.cooldown
    return found


class Rates:
    """Sets the learning rates of an optimizer's groups before each step, by a schedule."""

    parts: Mapping[str, Stateful] = {}

    def __init__(self, schedule: Any, optimizer: Optimizer) -> None:
        self.schedule, self.optimizer = schedule, optimizer
        self.peaks = [group["lr"] for group in optimizer.param_groups]
        """What the factors are on, by group."""

    def set(self, step: int, total: int | None, history: Sequence[float]) -> None:
        """Sets the rates for a step; the arguments are those of :meth:`Schedule.__call__`."""
        factor = self.schedule(step, total, history)
        for group, peak in zip(self.optimizer.param_groups, self.peaks, strict=True):
            group["lr"] = peak * factor

    def check(self, total: int | None) -> None:
        """Refuses a schedule that gives no factor, and what is none."""
        schedule, step = self.schedule, 1
        try:
            if isinstance(schedule, Schedule):
                after_warmup = schedule.warmup(total) + 1
                step = after_warmup if total is None else min(after_warmup, total)
            factor = schedule(step, total, ())
        except TextmillError:
            return  # of its check, in its own words
        except TypeError as error:
            raise UserError(
                "lr_scheduler is called as lr_scheduler(step, total, history), and that fails: "
                f"{error}"
            ) from error
        if not isinstance(factor, int | float) or not 0 <= factor < float("inf"):
            name = type(schedule).__qualname__
            raise UserError(
                f"lr_scheduler: {name} gives {factor!r:.40} for step {step}; wanted a number of 0 "
                "or more, by which the learning rate is multiplied."
            )


class TorchRates(Rates):
    """Rates that a scheduler of torch's sets, which has a state: it moves on once a step."""

    def __init__(self, schedule: Any, optimizer: Optimizer) -> None:
        super().__init__(schedule, optimizer)
        groups = optimizer.param_groups
        self.peaks = [group.get("initial_lr", group["lr"]) for group in groups]
        self.step = 1
        self.parts = {"lr_scheduler": self}

    @override
    def set(self, step: int, total: int | None, history: Sequence[float]) -> None:
        while self.step < step:  # a step that was left out counts
            self.schedule.step()
            self.step += 1

    @override
    def check(self, total: int | None) -> None:
        kind = type(self.schedule).__name__
        if self.schedule.optimizer is not self.optimizer:
            raise UserError(
                f"lr_scheduler: this {kind} moves another optimizer than the one that trains. "
                "Take the ingredient: def lr_scheduler(optimizer)."
            )
        if kind == "ReduceLROnPlateau":
            raise UserError(
                "lr_scheduler: ReduceLROnPlateau follows a value, and torch's schedulers are moved "
                "on once a step. Set lr_scheduler.type=plateau, which follows "
                "trainer.selection.metric as it does."
            )

    def state_dict(self) -> dict[str, Any]:
        return {"step": self.step, "scheduler": self.schedule.state_dict()}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.step = int(state["step"])
        self.schedule.load_state_dict(state["scheduler"])


def rates_by(schedule: Schedule | LRScheduler, optimizer: Optimizer) -> Rates:
    """What sets the optimizer's rates by a schedule, or by a scheduler of torch's."""
    is_torchs = hasattr(schedule, "get_last_lr")  # ReduceLROnPlateau is no LRScheduler everywhere
    return (TorchRates if is_torchs else Rates)(schedule, optimizer)
