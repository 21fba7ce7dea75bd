"""Who is told of a run: its reporters and callbacks. They see counters and values, not the loop."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

from weft.metrics.reporters import Reporter, Reporters
from weft.tasks.evaluate import Evaluation
from weft.training.callbacks import Callback
from weft.training.groups import Groups
from weft.training.progress import Progress
from weft.training.state import Clock

__all__ = ["Audience"]

ASKING = ("start", "step", "evaluated")
"""What a callback may answer with a request to stop."""

SECONDS_BETWEEN_TICKS = 0.05
"""A bar is drawn every tenth of a second; where the run is takes 5 microseconds to say."""


class Audience:
    """Tells reporters and callbacks where the run is, and what was measured there.

    Args:
        reporters: They take values and examples.
        callbacks: They may ask to stop, which the clock remembers.
        clock: The run's.
        data: The training data, which knows the place in the epoch.
        total: Steps of the whole run, where known.
    """

    def __init__(
        self,
        reporters: Sequence[Reporter],
        callbacks: Sequence[Callback],
        *,
        clock: Clock,
        data: Groups,
        total: int | None,
    ) -> None:
        self.reporters, self.callbacks = Reporters(reporters), list(callbacks)
        self.clock, self.data, self.total = clock, data, total
        self.ticked = -math.inf

    def tell(self, event: str, *seen: Any) -> None:
        """Tells the callbacks; a callback may ask to stop where the run can still be ended well."""
        for callback in self.callbacks:
            asks = getattr(callback, event)(*seen)
            if asks and event in ASKING:
                self.clock.asked_to_stop = True

    def tick(self, now: Progress) -> None:
        """Tells the reporters that a step was taken; of quick steps not all."""
        if now.seconds - self.ticked >= SECONDS_BETWEEN_TICKS:
            self.ticked = now.seconds
            self.reporters.tick(self.counters(now))

    def report(
        self, split: str, now: Progress, values: Mapping[str, float], rates: Mapping[str, float]
    ) -> None:
        """Hands values to the reporters, with what the wall clock decides beside the place."""
        self.reporters.report(split, self.counters(now, rates), values)

    def evaluated(self, split: str, now: Progress, evaluation: Evaluation) -> None:
        """Hands the values and the answered rows of an evaluation to the reporters."""
        self.report(split, now, evaluation.values, {})
        self.reporters.examples(split, self.counters(now), evaluation.rows)

    def counters(self, now: Progress, rates: Mapping[str, float] | None = None) -> dict[str, Any]:
        """Where the run is; whatever the wall clock decides stands apart, under ``time``."""
        place = {"step": now.steps, "total": self.total, "epoch": round(self.data.position, 3)}
        clock = {"elapsed": now.seconds, **(rates or {})}
        if self.total and now.steps:
            clock["eta"] = max(0, self.total - now.steps) * now.seconds / now.steps
        return {**place, "examples": now.examples, "time": clock}
