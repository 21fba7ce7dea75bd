"""How far a run has come, its clock, when things fall due, and signals that end it."""

import re
import signal
import time
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Literal

from typing_extensions import override

from textmill.config.values.typed_values import format_duration
from textmill.errors import RunStoppedError, UserError
from textmill.runtime.ranks import Ranks
from textmill.runtime.signals import StopSignals

_COUNTED = {"step": "steps", "epoch": "epochs", "example": "examples"}
_TIMED = {"s": "s", "sec": "s", "second": "s", "m": "min", "min": "min", "minute": "min"}
_UNITS = {**_COUNTED, **_TIMED, "h": "h", "hour": "h"}
MOST = 10**18
"""What no counter reaches; the names of checkpoints have so many digits."""
_SECONDS = {"s": 1, "min": 60, "h": 3600}


@dataclass(frozen=True)
class Progress:
    """Counters of a run; every one of them only grows."""

    steps: int = 0
    """Optimizer steps taken."""
    epochs: int = 0
    """Passes over the training data completed."""
    examples: int = 0
    """Training rows seen, repetitions counted."""
    seconds: float = 0.0
    """Wall-clock seconds spent, over all the processes of the run."""

    @classmethod
    def saved(cls, **counters: Any) -> "Progress":
        """The counters as a checkpoint has them."""
        for name, value in counters.items():
            kinds = (int, float) if name == "seconds" else (int,)
            if type(value) not in kinds or not 0 <= value < MOST:
                raise ValueError(f"{name} of a run cannot be {value!r:.40}")
        return cls(**counters)

    def state_dict(self) -> dict[str, Any]:
        return dict(vars(self))


@dataclass(frozen=True)
class Every:
    """An interval: a count and its unit. It falls due when the counter crosses a multiple.

    So one rule serves all units, and no last step is forgotten.

    Example:
        >>> Every.parse("1000 steps").due(Progress(steps=999), Progress(steps=1000))
        True
        >>> str(Every.parse("20 min")), str(Every.parse("500"))
        ('20 min', '500 steps')
    """

    count: int
    unit: Literal["steps", "epochs", "examples", "s", "min", "h"] = "steps"

    def __post_init__(self) -> None:
        if self.count < 1:
            raise UserError(f"An interval must be at least 1 {self.unit}, but is {self.count}.")

    @classmethod
    def parse(cls, text: str | int) -> "Every":
        """Reads ``500``, ``"1000 steps"``, ``"2 epochs"``, ``"20 min"``."""
        found = re.fullmatch(r"\s*(\d[\d_]*)\s*([a-z]*)\s*", str(text))
        word = found.group(2) if found else ""
        unit = "steps" if not word else _UNITS.get(word) or _UNITS.get(word.removesuffix("s"))
        if found is None or unit is None or int(found.group(1)) == 0:
            raise ValueError(
                f"an interval is a positive number with its unit, as '1000 steps', '2 epochs', "
                f"'5000 examples' or '20 min'; found '{text!s:.80}'"
            )
        return cls(int(found.group(1)), unit)  # type: ignore[arg-type]

    @override
    def __str__(self) -> str:
        return f"{self.count} {self.unit}"

    @property
    def timed(self) -> bool:
        """Whether it follows the clock on the wall, which no run repeats."""
        return self.unit in _SECONDS

    def times(self, now: Progress) -> int:
        """How many whole intervals the counter has passed."""
        counter = "seconds" if self.timed else self.unit
        return int(getattr(now, counter) // (self.count * _SECONDS.get(self.unit, 1)))

    def due(self, before: Progress, now: Progress) -> bool:
        """Whether the counter crossed a multiple of the interval between the two."""
        return self.times(now) > self.times(before)


@dataclass(frozen=True)
class Until:
    """Where a run ends: the first limit reached."""

    steps: int | None = None
    epochs: int | None = None
    time: timedelta | None = None

    def reached(self, now: Progress) -> bool:
        return bool(self.twice(now))

    def twice(self, now: Progress) -> str:
        """What is typed for a run twice as long: each limit that is reached, doubled.

        Example:
            >>> Until(steps=500, epochs=10).twice(Progress(steps=20, epochs=10))
            'trainer.max_epochs=20'
        """
        doubled = []
        if self.steps is not None and now.steps >= self.steps:
            doubled.append(f"trainer.max_steps={2 * self.steps}")
        if self.epochs is not None and now.epochs >= self.epochs:
            doubled.append(f"trainer.max_epochs={2 * self.epochs}")
        if self.time is not None and now.seconds >= self.time.total_seconds():
            doubled.append(f"trainer.max_time={format_duration(2 * self.time)}")
        return " ".join(doubled)

    @override
    def __str__(self) -> str:
        limits = (("steps", self.steps), ("epochs", self.epochs), ("of wall-clock time", self.time))
        return " or ".join(f"{value} {unit}" for unit, value in limits if value is not None)


class Clock:
    """Where a run is (``now``), and up to where everything that fell due was done (``seen``).

    The two differ after a step, and after a stop in the middle of an evaluation: a resumed run then
    does first what was due.
    """

    def __init__(self, until: Until) -> None:
        self.until = until
        self.now = self.seen = Progress()
        self.closed: Progress | None = None
        """Where the last evaluation of the run was made, or the end it had without one."""
        self.asked_to_stop = False
        self._started = time.monotonic()
        self._before = 0.0

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run, earlier processes included."""
        return self._before + time.monotonic() - self._started

    def state_dict(self) -> dict[str, Any]:
        return {
            "now": self.now.state_dict(),
            "seen": self.seen.state_dict(),
            "closed": self.closed and self.closed.state_dict(),
            "asked_to_stop": self.asked_to_stop,
            "until": str(self.until),
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes the places, and goes on counting time from there.

        A request to stop is forgotten where the run is given another limit: it is to go on.
        """
        self.now, self.seen = Progress.saved(**state["now"]), Progress.saved(**state["seen"])
        closed = state["closed"]
        self.closed = None if closed is None else Progress.saved(**closed)
        self.asked_to_stop = state["until"] == str(self.until) and bool(state["asked_to_stop"])
        self._before, self._started = self.now.seconds, time.monotonic()

    def spent(self, seconds: float) -> None:
        """Counts the time that was spent, although the run went back to an earlier place."""
        self.now, self.seen = (replace(place, seconds=seconds) for place in (self.now, self.seen))
        self._before, self._started = seconds, time.monotonic()


class StopAsked(Exception):  # noqa: N818  # no error: it leads out of an evaluation
    """A signal came during an evaluation, which is left at once."""


class Stops(StopSignals):
    """Signals that ask a run to stop; one on any rank is meant for all."""

    def __init__(self, ranks: Ranks) -> None:
        super().__init__()
        self.ranks = ranks

    def poll(self) -> None:
        """Raises :class:`StopAsked` if the run is to stop; nothing is saved yet."""
        if self.ranks.any(self.received is not None):
            heard = filter(None, self.ranks.gather(self.received))
            self.received = next(heard)  # all ranks say the same, and end with the same code
            raise StopAsked

    def error(self, step: int) -> RunStoppedError:
        """What ends the run, once everything is saved; the signal is forgotten with it."""
        everything = "everything is saved, and the same command goes on from here."
        return stopped(self, everything, at=f" at step {step:,}")


def stopped(stop: StopSignals, what: str, *, at: str = "") -> RunStoppedError:
    """What ends a run that a signal asked to stop; the signal is forgotten with it."""
    number, stop.received = stop.received or signal.SIGTERM, None
    return RunStoppedError(number, f"Stopped by {signal.Signals(number).name}{at}; {what}")
