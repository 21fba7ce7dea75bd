"""Selection of the best checkpoint by one named value, and the patience after which a run stops."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal, NamedTuple

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.registry import suggest
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.metrics.tables import is_of_label, is_share

__all__ = ["Selection"]

RENAMED = {"subset_accuracy": "accuracy"}
"""Values by the names that older runs have of them; a setting that changed would be another run."""


class Seen(NamedTuple):
    """What is kept of an evaluation: its step, the selected value, and its loss.

    The loss decides between equal values, and is infinite where it was no number; None where it is
    not known, in a run of before it was kept, or is the value itself.
    """

    step: int
    value: float
    loss: float | None = None

    def breaks_tie(self, best: "Seen") -> bool:
        """Whether it is better than one of an equal value; what is not known is not beaten."""
        return self.loss is not None and best.loss is not None and self.loss < best.loss


class Selection(Component):
    """Compares one value of each evaluation; NaN never wins and never counts as a best.

    Where it is equal the lower evaluation loss is the better, so that an exact match that is 0 for
    many epochs does not keep the first of them; without a lower loss the older stays. A lower loss
    alone is no progress of the metric: patience is counted from where the metric itself was better.

    Its history is the whole state: a schedule that follows the metric reads it from here.

    Example:
        >>> selection = Selection.Config(patience=2).build(directions={"loss": "lower"})
        >>> [
        ...     selection.see(step, {"loss": x})
        ...     for step, x in enumerate([3.0, float("nan"), 2.0, 2.5])
        ... ]
        [True, False, True, False]
        >>> selection.best
        (2, 2.0)
    """

    class Config(BaseConfig):
        """Settings of the selection."""

        metric: str = "loss"
        """Value of the evaluation on ``valid_data`` that is compared; of two that are equal the one
        with the lower evaluation loss is better, else the older."""
        better: Literal["auto", "higher", "lower"] = "auto"
        """Which way is better; ``auto`` asks the metric, so a value that a task's ``reduce`` adds
        needs one of the others."""
        patience: int | None = None
        """Evaluations in which the metric was not better, after which the run stops; null never
        stops."""
        min_delta: float = 0.0
        """Change smaller than this does not count as better."""

        def __post_init__(self) -> None:
            """Refuses numbers that would end a run at once, or call what is worse better."""
            if self.patience is not None and self.patience < 1:
                raise UserError(
                    "trainer.selection.patience must be at least 1 or null, "
                    f"but is {self.patience}."
                )
            require(self, "trainer.selection", not_negative=["min_delta"])

    config: Config

    def __init__(self, config: Config, *, directions: Mapping[str, str | None]) -> None:
        now = RENAMED.get(config.metric, config.metric)
        if now in directions and config.metric not in directions:
            config = replace(config, metric=now)
        if config.metric not in directions:
            names = [name for name in directions if not is_of_label(name)]
            raise UserError(
                f"trainer.selection.metric is '{config.metric}', which this task does not measure. "
                f"{suggest(config.metric, directions)}It measures: {', '.join(names)}."
            )
        way = directions[config.metric] if config.better == "auto" else config.better
        if way is None:
            raise UserError(
                f"trainer.selection.metric is '{config.metric}', which the task's reduce adds: no "
                "metric says which way is better. Set trainer.selection.better=higher or lower."
            )
        self.config, self.sign = config, (1.0 if way == "higher" else -1.0)
        self.history: list[Seen] = []
        self.remarks: tuple[str, ...] = ()
        """What a person should know of the best evaluation."""

    def see(self, step: int, values: Mapping[str, float], remarks: Sequence[str] = ()) -> bool:
        """Takes in an evaluation; returns whether it is the best so far."""
        loss = None
        if self.config.metric != "loss":
            found = float(values.get("loss", math.inf))
            loss = math.inf if math.isnan(found) else found
        seen = Seen(step, float(values[self.config.metric]), loss)
        self.history.append(seen)
        best = self._best[0] is seen
        self.remarks = tuple(remarks) if best else self.remarks
        return best

    @property
    def _best(self) -> tuple[Seen | None, Seen | None]:
        """The best evaluation, and the oldest whose metric is as good."""
        *_, found = [(None, None), *self._bests()]
        return found

    def _bests(self) -> Iterator[tuple[Seen | None, Seen | None]]:
        """What :attr:`_best` was after each evaluation."""
        best = oldest = None
        for seen in self.history:
            gain = math.inf if best is None else self.sign * (seen.value - best.value)
            if math.isnan(seen.value):
                pass
            elif gain > self.config.min_delta:
                best = oldest = seen
            elif gain == 0 and best is not None and seen.breaks_tie(best):
                best = seen
            yield best, oldest

    @property
    def losses(self) -> list[float]:
        """The selected value of every evaluation, oldest first; negated where higher is better."""
        return [-self.sign * seen.value for seen in self.history]

    @property
    def best(self) -> tuple[int, float] | None:
        """Step and value of the best evaluation; None before the first that is a number."""
        best, _ = self._best
        return None if best is None else (best.step, best.value)

    def is_best(self, step: int) -> bool:
        """Whether the best evaluation was at this step."""
        return self.best is not None and self.best[0] == step

    def advice(self, steps: int, *, longer: str) -> str:
        """What the best step says of the run's length; empty where it says nothing.

        Args:
            steps: Those of the whole run.
            longer: The settings of a longer run.
        """
        if self.best is None or len(self.history) < 2:
            return ""
        step, value = self.best
        if step == steps and longer and not self._is_perfect(value):
            return f"The best step is the last one; a longer run may be better: {longer}."
        patience, end = self._patience_enough()
        if self.config.patience is None and 4 * end <= 3 * steps:
            return (
                f"The best step was {step:,} of {steps:,}: with trainer.selection.patience="
                f"{patience} the run would have ended at step {end:,}, with the same weights."
            )
        return ""

    def _is_perfect(self, value: float) -> bool:
        share = is_share(self.config.metric, value)
        return share and value == (1.0 if self.sign > 0 else 0.0)

    def _patience_enough(self) -> tuple[int, float]:
        """The least patience, from 3 on, that keeps the best, and the step at which it ends."""
        waited = longest = needed = 0
        waits = []
        for seen, (best, oldest) in zip(self.history, self._bests(), strict=True):
            if seen is best:
                needed = longest  # a shorter patience ends the run before this one
            waited = 0 if seen is oldest else waited + 1
            longest = max(longest, waited)
            waits.append(waited)
        patience = max(3, needed + 1)
        ends = (s.step for s, n in zip(self.history, waits, strict=True) if n >= patience)
        return patience, next(ends, math.inf)

    def stalled(self) -> bool:
        """Whether patience is spent."""
        if self.config.patience is None or not self.history:
            return False
        _, best = self._best
        since = sum(1 for seen in self.history if best is None or seen.step > best.step)
        return since >= self.config.patience

    @property
    def patience_spent(self) -> str:
        """Why the run ends, in words, where patience is spent."""
        metric, (_, best) = self.config.metric, self._best
        since = f"since step {best.step:,}" if best else "at all"
        return (
            f"{metric} was not better {since}, and trainer.selection.patience="
            f"{self.config.patience} evaluations are spent"
        )

    def state_dict(self) -> dict[str, Any]:
        """The history; the step of the best, for where the pointer to it is damaged; its remarks.

        An evaluation is its step and value, and its loss where that is known and another number.
        """
        best = self.best
        history = [list(seen[:2] if seen.loss is None else seen) for seen in self.history]
        remarks = {"remarks": list(self.remarks)} if self.remarks else {}
        return {"history": history, "best": None if best is None else best[0], **remarks}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes a saved history."""
        self.history = [Seen(int(step), *map(float, rest)) for step, *rest in state["history"]]
        self.remarks = tuple(map(str, state.get("remarks", ())))
