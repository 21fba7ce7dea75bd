"""The training loss since the last report, exact, of all batches."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from textmill.metrics.streaming import ExactSum
from textmill.tasks.task import Loss
from textmill.training.progress import Progress

MOST_PENDING = 1024
"""Batches whose sums wait; 512 bytes each on CUDA."""


class RunningLoss:
    """Sums of the training loss since the last report: exact, and adding waits for no device."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.count = ExactSum()
        self.sums: dict[str, ExactSum] = defaultdict(ExactSum)
        self._pending: list[tuple[tuple[str, ...], Tensor]] = []
        self.steps, self.examples, self.seconds = 0, 0, 0.0

    def add(self, loss: Loss) -> None:
        """Adds one batch; its numbers may be changed in place afterwards."""
        values = {"loss": loss.total, **loss.sums}
        numbers = (loss.count, *values.values())
        if not _alike(numbers):
            self.count.add(loss.count)
            for name, value in values.items():
                self.sums[name].add(value)
            return
        # One copy of all takes 2 microseconds; one of each takes 4 for every number.
        self._pending.append((tuple(values), torch.stack(numbers).detach()))
        if len(self._pending) >= MOST_PENDING:
            self._settle()

    def took(self, examples: int, *, seconds: float) -> None:
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
        }
        if count != self.examples:  # a text with one label: they are one number
            rates["targets_per_second"] = count / seconds
        self._clear()
        return values, rates

    def state_dict(self) -> dict[str, Any]:
        self._settle()
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
                self.sums[name].add_all(column)


_NOTHING: dict[str, Any] = {"count": ExactSum().state(), "sums": {}, "examples": 0}


def _alike(numbers: Sequence[Tensor | float]) -> bool:
    kinds = {(n.ndim, n.dtype, n.device) if isinstance(n, Tensor) else None for n in numbers}
    return len(kinds) == 1 and all(kind and kind[0] == 0 for kind in kinds)
