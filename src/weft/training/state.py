"""State of the loop that has no home of its own: the clock, and the sums since the last report."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from weft.metrics.streaming import ExactSum
from weft.tasks.task import Loss
from weft.training.progress import Progress, Until

__all__ = ["Clock", "TrainSums", "norm_of"]

MOST_PENDING = 1024
"""Batches whose sums wait; 512 bytes each on CUDA."""


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
        """The places, and whether a callback asked the run to stop, under which limit."""
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
        closed = state.get("closed", state["seen"])
        self.closed = None if closed is None else Progress.saved(**closed)
        same = state.get("until", str(self.until)) == str(self.until)
        self.asked_to_stop = same and bool(state.get("asked_to_stop"))
        self._before, self._started = self.now.seconds, time.monotonic()

    def spent(self, seconds: float) -> None:
        """Counts the time that was spent, although the run went back to an earlier place."""
        self.now, self.seen = (replace(place, seconds=seconds) for place in (self.now, self.seen))
        self._before, self._started = seconds, time.monotonic()


class TrainSums:
    """Sums of the training loss since the last report: exact, and adding waits for no device."""

    def __init__(self) -> None:
        self.count = ExactSum()
        self.sums: dict[str, ExactSum] = {}
        self._pending: list[tuple[tuple[str, ...], Tensor]] = []
        self.steps, self.examples, self.seconds = 0, 0, 0.0

    def add(self, loss: Loss) -> None:
        """Adds one batch; its numbers may be changed in place afterwards."""
        values = {"loss": loss.total, **loss.sums}
        numbers = (loss.count, *values.values())
        if not _alike(numbers):
            self.count.add(loss.count)
            for name, value in values.items():
                self._sum(name).add(value)
            return
        # One copy of all takes 2 microseconds; one of each takes 4 for every number.
        self._pending.append((tuple(values), torch.stack(numbers).detach()))
        if len(self._pending) >= MOST_PENDING:
            self._settle()

    def took(self, examples: int, *, seconds: float) -> None:
        """Counts a step that has been taken."""
        self.steps, self.examples = self.steps + 1, self.examples + examples
        self.seconds += seconds

    def pop(self) -> tuple[dict[str, float], dict[str, float]]:
        """The means since the last report and the rates by the wall clock; starts anew."""
        self._settle()
        count, seconds = float(self.count.exact()), max(1e-9, self.seconds)
        sums = {name: float(total.exact()) for name, total in self.sums.items()}
        values = {name: total / count for name, total in sums.items()} if count else {}
        rates = {
            "steps_per_second": self.steps / seconds,
            "examples_per_second": self.examples / seconds,
            "targets_per_second": count / seconds,
        }
        self.__init__()  # type: ignore[misc]  # the one way to be as new
        return values, rates

    def state_dict(self) -> dict[str, Any]:
        """The sums as text that is read back exactly."""
        self._settle()
        return {
            "count": self.count.state(),
            "sums": {name: total.state() for name, total in self.sums.items()},
            "steps": self.steps,
            "examples": self.examples,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes saved sums."""
        self.__init__()  # type: ignore[misc]
        self.count.add_state(str(state["count"]))
        for name, total in state["sums"].items():
            self._sum(name).add_state(str(total))
        taken = Progress.saved(**{name: state[name] for name in ("steps", "examples", "seconds")})
        self.steps, self.examples, self.seconds = taken.steps, taken.examples, taken.seconds

    def _sum(self, name: str) -> ExactSum:
        return self.sums.setdefault(name, ExactSum())

    def _settle(self) -> None:
        """Reads what waits on a device: in one transfer where all batches have the same sums."""
        pending, self._pending = self._pending, []
        by_kind: dict[tuple[tuple[str, ...], torch.dtype], list[Tensor]] = {}
        for names, numbers in pending:
            by_kind.setdefault((names, numbers.dtype), []).append(numbers)
        for (names, _), rows in by_kind.items():
            counts, *columns = torch.stack(rows).T.tolist()
            self.count.add_all(counts)
            for name, column in zip(names, columns, strict=True):
                self._sum(name).add_all(column)


def _alike(numbers: Sequence[Tensor | float]) -> bool:
    """Whether numbers are tensors without dimensions, of one type on one device."""
    first = numbers[0]
    return isinstance(first, Tensor) and all(
        isinstance(n, Tensor)
        and n.ndim == 0
        and n.dtype == first.dtype
        and n.device == first.device
        for n in numbers
    )


def norm_of(gradients: list[Tensor]) -> Tensor:
    """The 2-norm of all gradients together, shape ``[]``; NaN or infinite if any gradient is."""
    return torch.nn.utils.get_total_norm(gradients)
