"""Who observes a run: its reporters and callbacks. They see counters and values, not the loop."""

import logging
import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.config.component import refuse_other_methods
from textmill.errors import UserError
from textmill.metrics.reporters import Reporter, Reporters, RunInfo
from textmill.runtime.devices import Experiment
from textmill.runtime.memory import held_words
from textmill.runtime.ranks import Ranks
from textmill.tasks.evaluation import Evaluation
from textmill.tasks.task import Task
from textmill.training.progress import Clock, Progress
from textmill.training.sources import Sources

LOG = logging.getLogger("textmill")

ASKING = ("start", "step", "evaluated")
"""What a callback may answer with a request to stop."""

SECONDS_BETWEEN_TICKS = 0.05
"""A bar is drawn every tenth of a second; where the run is takes 5 microseconds to say."""


class Callback:
    """Base of the callbacks: override what you want to see.

    ``start``, ``step`` and ``evaluated`` ask the run to stop by returning True: it is evaluated,
    saved and ended. A resumed run remembers that it was asked, unless it is given another length.
    ``saved`` and ``end`` only observe; what they return is no request.

    Example:
        >>> class StopBelow(Callback):
        ...     def evaluated(self, progress, values):
        ...         return values["loss"] < 0.1
        >>> StopBelow().evaluated(Progress(), {"loss": 0.05})
        True
    """

    @override
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_other_methods(cls)

    def start(self, progress: Progress) -> bool | None:
        """The loop starts, freshly or resumed."""

    def step(self, progress: Progress) -> bool | None:
        """An optimizer step was taken."""

    def evaluated(self, progress: Progress, values: Mapping[str, float]) -> bool | None:
        """``valid_data`` was evaluated."""

    def saved(self, progress: Progress, checkpoint: Path) -> object:
        """A checkpoint is safely on the disk."""

    def end(self, progress: Progress) -> object:
        """The loop has ended."""


def _checked(given: Any, kind: type[Any]) -> list[Any]:
    """The reporters, or callbacks; refuses one without all that is called of it."""
    name = kind.__name__.lower()
    wanted = f"wanted a list of objects of classes that inherit from {kind.__name__}"
    if not isinstance(given, Iterable):
        raise UserError(f"{name}s: {wanted}, found a {type(given).__qualname__} and no list.")
    found = list(given)
    for each in found:
        if isinstance(each, type):
            raise UserError(f"{name}s: {wanted}, found the class {each.__qualname__} itself.")
        lacks = [one for one in vars(kind) if not (one.startswith("_") or hasattr(each, one))]
        if lacks:
            raise UserError(
                f"{name}s: {wanted}, found a {type(each).__qualname__} without {', '.join(lacks)}."
            )
    return found


class Observers:
    """Tells reporters and callbacks where the run is, and what was measured there.

    The clock remembers that a callback asked to stop, the training data knows the place in the
    epoch, and ``total`` are the steps of the whole run, where known. Of many ranks the first tells
    its reporters and callbacks, and all stop where one of them asks.
    """

    def __init__(
        self,
        reporters: Sequence[Reporter],
        callbacks: Sequence[Callback],
        *,
        clock: Clock,
        data: Sources,
        total: int | None,
        ranks: Ranks,
    ) -> None:
        self.ranks = ranks
        self.reporters = Reporters(_checked(reporters, Reporter) if ranks.env.is_main else ())
        self.callbacks = _checked(callbacks, Callback)
        self.clock, self.data, self.total = clock, data, total
        self.ticked = -math.inf

    def start(self, task: Task, xp: Experiment, *, selected: str = "") -> None:
        """Tells all that the loop starts, freshly or resumed, of what, and what value selects."""
        size = sum(p.numel() for p in task.module.parameters())
        facts: dict[str, str | int | float] = {"parameters": size, "device": str(task.device)}
        info = RunInfo(
            recipe=xp.recipe,
            folder=xp.folder,
            step=self.clock.now.steps,
            total=self.total,
            facts=facts if self.ranks.size == 1 else {**facts, "ranks": self.ranks.size},
            directions=task.directions(),
            selected=selected,
        )
        self.reporters.start(info)
        self.tell("start", self.clock.now)

    def tell(self, event: str, *seen: Any) -> None:
        """Tells the callbacks; a callback may ask to stop where the run can still be ended well."""
        for callback in self.callbacks if self.ranks.env.is_main else ():
            if getattr(callback, event)(*seen) and event in ASKING:
                self.clock.asked_to_stop = True
        if self.callbacks and event in ASKING:
            self.clock.asked_to_stop = self.ranks.any(self.clock.asked_to_stop)

    def tick(self, now: Progress) -> None:
        """Tells the reporters that a step was taken; of quick steps not all.

        After the first step of this process a line says what memory was held.
        """
        if self.ticked == -math.inf and self.ranks.env.is_main:
            LOG.info("Memory: %s.", held_words(str(self.ranks.env.device)))
        if now.seconds - self.ticked >= SECONDS_BETWEEN_TICKS:
            self.ticked = now.seconds
            self.reporters.tick(self.counters(now))

    def report(
        self, split: str, now: Progress, values: Mapping[str, float], rates: Mapping[str, float]
    ) -> None:
        self.reporters.report(split, self.counters(now, **rates), values)

    def evaluated(self, split: str, now: Progress, evaluation: Evaluation, *, kept: bool) -> None:
        """Hands the values and the answered rows of an evaluation to the reporters.

        ``kept`` says whether the run keeps the weights that were measured, as far as it has come.
        """
        self.report(split, now, evaluation.values, {})
        self.reporters.examples(split, {**self.counters(now), "kept": kept}, evaluation.rows)

    def counters(self, now: Progress, **rates: float) -> dict[str, Any]:
        """Where the run is; whatever the wall clock decides stands apart, under ``time``."""
        place = {"step": now.steps, "total": self.total, "epoch": round(self.data.position, 3)}
        clock = {"elapsed": now.seconds, **rates}
        if self.total and 0 < now.steps < self.total:
            clock["eta"] = (self.total - now.steps) * now.seconds / now.steps
        return {**place, "examples": now.examples, "time": clock}
