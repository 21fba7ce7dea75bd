"""Selection of the best checkpoint by one named value, and the patience after which a run stops."""

import math
from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.registry import suggest
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.metrics.tables import format_value, is_of_label, is_share


class Seen(NamedTuple):
    """What is kept of an evaluation: its step, the selected value, and its standard error.

    The error is 0 where it is not known: what is then lower, or higher, is worse.
    """

    step: int
    value: float
    error: float = 0.0


class Standing(NamedTuple):
    """What is best after an evaluation; None before the first value that is a number."""

    best: Seen | None = None
    """The latest evaluation that is as good as the peak: its weights are kept."""
    peak: Seen | None = None
    """The first of the highest value (or lowest, where lower is better)."""
    progress: Seen | None = None
    """The last that was better than the one before it by more than ``min_delta``."""


class Selection(Component):
    """Compares one value of each evaluation; NaN never wins and never counts as a best.

    The best is the latest evaluation whose value is within ``standard_errors`` of the peak, the
    highest value so far (or the lowest, where lower is better): what rows by chance make of an
    evaluation is not taken for progress, and of evaluations that are as good the later one has been
    trained for longer (Breiman et al. 1984, section 3.4.3, the rule of one standard error). Equal
    values are as good, whatever the metric. Patience is counted from the last value that was better
    by more than ``min_delta``.

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

    class Config(BaseConfig, first=("metric", "patience")):
        metric: str = "loss"
        """Value of the evaluation on ``valid_data`` that is compared; auto is the task's: of words
        ``span_f1`` where labels mark spans and else ``token_accuracy``, of others the loss."""
        better: Literal["auto", "higher", "lower"] = "auto"
        """Which way is better; ``auto`` asks the metric, so a value that a task's ``reduce`` adds
        needs one of the others."""
        standard_errors: float = 1.0
        """A later evaluation is taken if it is worse than the best by no more than this many
        standard errors; 0 takes the best value alone. Shares (accuracy, F1, exact match) and
        correlations have a standard error; a loss, perplexity, BLEU and ROUGE have none."""
        patience: int | None = None
        """The run stops after this many evaluations without an improvement; null never stops it."""
        min_delta: float = 0.0
        """An improvement of no more than this does not reset the patience."""

        def __post_init__(self) -> None:
            if self.patience is not None and self.patience < 1:
                raise UserError(
                    "trainer.selection.patience must be at least 1 or null, "
                    f"but is {self.patience}."
                )
            require(self, "trainer.selection", not_negative=["min_delta", "standard_errors"])

    config: Config

    def __init__(self, config: Config, *, directions: Mapping[str, str | None]) -> None:
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
        """Remarks on the best evaluation."""
        self.begins = 0
        """The first step that can be the best; evaluations before it do not spend patience."""

    def see(
        self,
        step: int,
        values: Mapping[str, float],
        *,
        errors: Mapping[str, float] | None = None,
        remarks: Sequence[str] = (),
    ) -> bool:
        """Takes in an evaluation; returns whether it is the best so far."""
        metric = self.config.metric
        seen = Seen(step, float(values[metric]), float((errors or {}).get(metric, 0.0)))
        self.history.append(seen)
        best = self._best[0] is seen
        self.remarks = tuple(remarks) if best else self.remarks
        return best

    @property
    def _best(self) -> Standing:
        *_, found = [Standing(), *self._bests()]
        return found

    def _bests(self) -> Iterator[Standing]:
        """What was best after each evaluation."""
        best = peak = progress = None
        for seen in self.history:
            if not math.isnan(seen.value) and seen.step >= self.begins:
                peak = seen if peak is None or self._gain(seen, peak) > 0 else peak
                if progress is None or self._gain(seen, progress) > self.config.min_delta:
                    progress = seen
                if self._gain(seen, peak) >= -self.config.standard_errors * peak.error:
                    best = seen
            yield Standing(best, peak, progress)

    def _gain(self, seen: Seen, other: Seen) -> float:
        equal = seen.value == other.value  # both may be infinite
        return 0.0 if equal else self.sign * (seen.value - other.value)

    @property
    def losses(self) -> list[float]:
        """The selected value of every evaluation, oldest first; negated where higher is better."""
        return [-self.sign * seen.value for seen in self.history]

    @property
    def best(self) -> tuple[int, float] | None:
        """Step and value of the best evaluation; None before the first that is a number."""
        best = self._best.best
        return None if best is None else (best.step, best.value)

    @property
    def peak(self) -> tuple[int, float] | None:
        """Step and value of the highest value (or lowest, where lower is better); None as above."""
        peak = self._best.peak
        return None if peak is None else (peak.step, peak.value)

    def is_best(self, step: int) -> bool:
        return self.best is not None and self.best[0] == step

    def advice(self, steps: int, *, longer: str) -> list[str]:
        """Advice about the best step and the length of the run; often none."""
        best, peak, _ = self._best
        if best is None or peak is None or len(self.history) < 2:
            return []
        lines = []
        if best.value != peak.value:
            metric, shown = self.config.metric, partial(format_value, self.config.metric)
            lines.append(
                f"Step {best.step:,} is taken: {metric} {shown(best.value)} is within "
                f"{shown(self.config.standard_errors * peak.error)} of the best, "
                f"{shown(peak.value)} at step {peak.step:,} (trainer.selection.standard_errors)."
            )
        patience, end = self._patience_enough()
        perfect = is_share(self.config.metric, peak.value) and peak.value == max(self.sign, 0.0)
        if peak.step == steps and longer and not perfect:
            lines.append(f"The best step is the last one; a longer run may be better: {longer}.")
        elif self.config.patience is None and 4 * end <= 3 * steps:
            lines.append(
                f"The best step was {best.step:,} of {steps:,}: with trainer.selection.patience="
                f"{patience} the run would have ended at step {end:,}, with the same weights."
            )
        return lines

    def _patience_enough(self) -> tuple[int, float]:
        """The least patience, from 3 on, that keeps the best, and the step at which it ends."""
        waited = longest = needed = 0
        waits = []
        for seen, (best, _, progress) in zip(self.history, self._bests(), strict=True):
            if seen is best:
                needed = longest  # a shorter patience ends the run before this one
            waited = 0 if seen is progress else waited + 1
            longest = max(longest, waited)
            waits.append(waited)
        patience = max(3, needed + 1)
        ends = (s.step for s, n in zip(self.history, waits, strict=True) if n >= patience)
        return patience, next(ends, math.inf)

    def stalled(self) -> bool:
        if self.config.patience is None or not self.history:
            return False
        last = self._best.progress
        since = sum(seen.step >= (last.step + 1 if last else self.begins) for seen in self.history)
        return since >= self.config.patience

    @property
    def patience_spent(self) -> str:
        """Why the run ends, as a message, once patience is spent."""
        metric, last = self.config.metric, self._best.progress
        since = f"since step {last.step:,}" if last else "at all"
        return (
            f"{metric} was not better {since}, and trainer.selection.patience="
            f"{self.config.patience} evaluations are spent"
        )

    def state_dict(self) -> dict[str, Any]:
        """The history; the step of the best, for where the pointer to it is damaged; its remarks.

        An evaluation is its step and value, and its standard error where that is known.
        """
        best = self.best
        history = [list(seen if seen.error else seen[:2]) for seen in self.history]
        remarks = {"remarks": list(self.remarks)} if self.remarks else {}
        return {"history": history, "best": None if best is None else best[0], **remarks}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.history = [Seen(int(step), *map(float, rest)) for step, *rest in state["history"]]
        self.remarks = tuple(map(str, state.get("remarks", ())))
