"""State of the loop that has no home of its own: the clock, and the sums since the last report."""

import time
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from weft.tasks.task import Loss
from weft.training.progress import Progress

__all__ = ["Clock", "TrainSums"]


class Clock:
    """Where a run is (``now``), and up to where everything that fell due was done (``seen``).

    The two differ after a step, and after a stop in the middle of an evaluation: a resumed run then
    does first what was due.
    """

    def __init__(self) -> None:
        self.now = self.seen = Progress()
        self.asked_to_stop = False
        self._started = time.monotonic()
        self._before = 0.0

    @property
    def seconds(self) -> float:
        """Wall-clock seconds of the run, earlier processes included."""
        return self._before + time.monotonic() - self._started

    def state_dict(self) -> dict[str, Any]:
        """Both places, and whether a callback asked the run to stop."""
        places = {"now": self.now.state_dict(), "seen": self.seen.state_dict()}
        return {**places, "asked_to_stop": self.asked_to_stop}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes both places, and goes on counting time from there."""
        self.now, self.seen = Progress(**state["now"]), Progress(**state["seen"])
        self.asked_to_stop = bool(state.get("asked_to_stop"))
        self._before, self._started = self.now.seconds, time.monotonic()


class TrainSums:
    """Sums of the training loss since the last report, kept on the device: adding needs no sync."""

    def __init__(self) -> None:
        self.count: Tensor | float = 0.0
        self.sums: dict[str, Tensor | float] = {}
        self.steps, self.examples, self.seconds = 0, 0, 0.0

    def add(self, loss: Loss) -> None:
        """Adds one batch."""
        self.count = self.count + loss.count.double()
        for name, value in {"loss": loss.total.detach(), **loss.sums}.items():
            self.sums[name] = self.sums.get(name, 0.0) + value.double()

    def took(self, examples: int, *, seconds: float) -> None:
        """Counts a step that has been taken."""
        self.steps, self.examples = self.steps + 1, self.examples + examples
        self.seconds += seconds

    def pop(self) -> tuple[dict[str, float], dict[str, float]]:
        """The means since the last report and the rates by the wall clock; starts anew."""
        count, seconds = float(self.count), max(1e-9, self.seconds)
        values = {name: float(total) / count for name, total in self.sums.items()} if count else {}
        rates = {
            "steps_per_second": self.steps / seconds,
            "examples_per_second": self.examples / seconds,
            "targets_per_second": count / seconds,
        }
        self.__init__()  # type: ignore[misc]  # the one way to be as new
        return values, rates

    def state_dict(self) -> dict[str, Any]:
        """The sums as numbers."""
        return {
            "count": float(self.count),
            "sums": {name: float(value) for name, value in self.sums.items()},
            "steps": self.steps,
            "examples": self.examples,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes saved sums."""
        self.__init__()  # type: ignore[misc]
        self.count, self.sums = state["count"], dict(state["sums"])
        self.steps, self.examples = state["steps"], state["examples"]
        self.seconds = state["seconds"]


def finite_norm(parameters: list[Tensor]) -> Tensor:
    """The 2-norm of all gradients together, shape ``[]``; NaN or infinite if any gradient is."""
    gradients = [p.grad for p in parameters if p.grad is not None]
    return torch.nn.utils.get_total_norm(gradients)
