"""A search: Optuna proposes the cells, sees what they measure, and stops those without hope."""

import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.errors import TextmillError
from textmill.launch.cells import Cell
from textmill.launch.grid import Cells
from textmill.launch.grid_table import Outcome, selected_by
from textmill.launch.grid_words import Axis
from textmill.metrics.tables import format_value
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import numbers
from textmill.runs.study import Study, import_optuna
from textmill.runtime.jsonl_log import read_lines

FIRST = 5
"""Cells that are trained to their end before any is stopped: a median needs some."""
FIRST_EVALUATION = 2
"""The evaluation from which on a cell may be stopped: many settings are slow at first."""
COMMAND = "textmill grid --search optuna"


class OptunaSearch(Cells):
    """Cells of which each is a trial of an Optuna study: TPE proposes, the median prunes.

    A trial whose cell was interrupted stays open in the journal, and the next start of the search
    goes on with it. A search of one cell at a time proposes the same each time. Values are turned
    so that lower is better.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        folder: Path,
        place: Callable[[tuple[str, ...]], Cell],
        trials: int,
    ) -> None:
        super().__init__([])
        optuna = import_optuna(COMMAND)
        self.axes, self.place, self.total = axes, place, trials
        self._trials: dict[Path, dict[int, Any]] = {}  # of a cell: two proposals may be the same
        self._sizes: dict[Path, int] = {}
        self._study = Study(
            folder,
            "grid",
            trials,
            {axis.name: _space(optuna.distributions, axis) for axis in axes},
            lambda number: optuna.samplers.TPESampler(seed=number),
            what=COMMAND,
            pruner=optuna.pruners.MedianPruner(
                n_startup_trials=FIRST, n_warmup_steps=FIRST_EVALUATION
            ),
        )
        for trial in self._study.trials:
            if trial.params.keys() != {axis.name for axis in axes}:
                continue  # it was killed while it was proposed
            cell = self._cell(self._study.live(trial.number))
            if trial.state.is_finished() and cell.state != "finished":
                cell.state = "pruned" if trial.state.name == "PRUNED" else "failed"
                cell.reason = str(trial.user_attrs.get("reason", ""))

    def _cell(self, trial: Any) -> Cell:
        """The cell of a trial; the one of before if its settings were proposed before."""
        words = (f"{axis.name}={_typed(trial.params[axis.name], axis)}" for axis in self.axes)
        placed = self.place(tuple(words))
        cell = next((cell for cell in self.cells if cell.folder == placed.folder), placed)
        if cell is placed:
            self.cells.append(cell)
        self._trials.setdefault(cell.folder, {})[trial.number] = trial
        return cell

    @override
    def take(self) -> Cell | None:
        while (trial := self._study.take()) is not None:
            cell = self._cell(trial)
            if cell.state == "open":
                return cell
            if cell.state != "at work":  # known already, or it cannot be planned
                self.ended(cell)
        return None

    @override
    def hopeless(self, cell: Cell) -> str:
        """Tells the study what a cell has measured since, and asks whether it is to be stopped.

        Evaluations are compared by their numbers, so that cells with other steps can be.
        """
        path = cell.folder / "metrics.jsonl"
        with suppress(OSError):
            if path.stat().st_size == self._sizes.get(cell.folder):
                return ""
            self._sizes[cell.folder] = path.stat().st_size
        metric, sign, values = _measured(cell.folder)
        for number, trial in self._trials[cell.folder].items():
            known = self._study.trials[number].intermediate_values
            for place, (step, value) in enumerate(values, 1):
                if place in known or not math.isfinite(value):
                    continue
                trial.report(-sign * value, place)
                if trial.should_prune():
                    shown = format_value(metric, value)
                    return f"{metric} {shown} at step {step:,.0f} is worse than the median so far"
        return ""

    @override
    def ended(self, cell: Cell) -> None:
        """Reports a cell to the study; the trial of one that was killed stays open."""
        for number, trial in self._trials[cell.folder].items():
            if self._study.trials[number].state.is_finished() or cell.killed:
                continue
            rank = Outcome.of(cell).rank
            if cell.state == "finished" and math.isfinite(rank):
                self._study.tell(number, rank)
                continue
            if cell.reason:
                trial.set_user_attr("reason", cell.reason)
            self._study.tell(number, state="PRUNED" if cell.state == "pruned" else "FAIL")


def _measured(folder: Path) -> tuple[str, float, list[tuple[float, float]]]:
    """What a run at work is selected by, its sign, and its values so far with their steps."""
    with suppress(TextmillError, OSError):
        metric, sign = selected_by(RunFolder(folder).info)
        lines = map(_of_valid, read_lines(folder / "metrics.jsonl"))
        return metric, sign, [(v["step"], v[metric]) for v in lines if metric in v and "step" in v]
    return "", 1.0, []


def _of_valid(line: Mapping[str, Any]) -> dict[str, float]:
    """The numbers of an evaluation on ``valid_data``; none of another line."""
    return numbers(line, ()) if line.get("split") == "valid" else {}


def _space(distributions: Any, axis: Axis) -> Any:
    """Optuna's distribution of a setting."""
    if axis.range is None:
        return distributions.CategoricalDistribution(axis.values)
    if axis.range == "int":
        return distributions.IntDistribution(*map(int, axis.values))
    return distributions.FloatDistribution(*map(float, axis.values), log=axis.range == "log")


def _typed(value: Any, axis: Axis) -> str:
    """A proposed value as it is typed: numbers to four digits."""
    if not isinstance(value, float):
        return str(value)
    low, high = map(float, axis.values)
    return f"{value:.4g}" if low <= float(f"{value:.4g}") <= high else repr(value)
