"""The training loss since the last report, exact, of all batches."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

from textmill.metrics.streaming import ExactSum
from textmill.tasks.task import Loss
from textmill.training.progress import Progress


class RunningLoss:
    """Sums of the training loss since the last report: exact, and adding waits for no device."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.count = ExactSum()
        self.sums: dict[str, ExactSum] = defaultdict(ExactSum)
        self.steps, self.examples, self.seconds = 0, 0, 0.0

    def add(self, loss: Loss) -> None:
        """Adds one batch; its numbers may be changed in place afterwards."""
        self.count.add(loss.count)
        for name, value in {"loss": loss.total, **loss.sums}.items():
            self.sums[name].add(value)

    def took(self, examples: int, *, seconds: float) -> None:
        self.steps, self.examples = self.steps + 1, self.examples + examples
        self.seconds += seconds

    def pop(self) -> tuple[dict[str, float], dict[str, float]]:
        """The means since the last report and the rates by the wall clock; starts anew."""
        count, seconds = float(self.count.exact()), max(1e-9, self.seconds)
        sums = {name: float(total.exact()) for name, total in self.sums.items()}
        values = {name: total / count for name, total in sums.items()} if count else {}
        rates = {
            "steps_per_second": self.steps / seconds,
            "examples_per_second": self.examples / seconds,
        }
        if count != self.examples:  # a text with one label: they are one number
            rates["targets_per_second"] = count / seconds
        self._clear()
        return values, rates

    def state_dict(self) -> dict[str, Any]:
        return {
            "count": self.count.state(),
            "sums": {name: total.state() for name, total in self.sums.items()},
            "steps": self.steps,
            "examples": self.examples,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._clear()
        self.count.add_state(str(state["count"]))
        for name, total in state["sums"].items():
            self.sums[name].add_state(str(total))
        taken = Progress.saved(**{name: state[name] for name in ("steps", "examples", "seconds")})
        self.steps, self.examples, self.seconds = taken.steps, taken.examples, taken.seconds

    def joined(self, states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The sums of all ranks, of their states; steps and seconds are those of each of them."""
        whole = RunningLoss()
        for state in states:
            whole.count.add_state(str(state["count"]))
            for name, total in state["sums"].items():
                whole.sums[name].add_state(str(total))
            whole.examples += state["examples"]
        alike = {name: states[0][name] for name in ("steps", "seconds")}
        return {**whole.state_dict(), **alike}

    def share(self, state: Mapping[str, Any], rank: int, world_size: int) -> Mapping[str, Any]:
        return state if rank == 0 else {**state, **_NOTHING}


_NOTHING: dict[str, Any] = {"count": ExactSum().state(), "sums": {}, "examples": 0}
