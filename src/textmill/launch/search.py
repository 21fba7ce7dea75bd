"""A search: Optuna proposes the cells, sees what they measure, and stops those without hope."""

import importlib.util
import math
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from textmill.errors import MissingExtraError, TextmillError
from textmill.launch.cells import Cell
from textmill.launch.grid_table import Outcome, selected_by
from textmill.launch.grid_words import Axis
from textmill.metrics.tables import format_value
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import numbers
from textmill.runtime.jsonl_log import JsonlLog, read_lines

JOURNAL = "trials.jsonl"
"""Everything the search knows, in the folder of the grid: Optuna's journal, JSON and no pickle."""
FIRST = 5
"""Cells that are trained to their end before any is stopped: a median needs some."""
FIRST_EVALUATION = 2
"""The evaluation from which on a cell may be stopped: many settings are slow at first."""


def refuse_no_optuna() -> None:
    """Refuses a search where the package is not installed.

    Raises:
        MissingExtraError: It is not.
    """
    if importlib.util.find_spec("optuna") is None:
        raise MissingExtraError("optuna", extra="optuna", what="textmill grid --search optuna")


class OptunaSearch:
    """A source of cells, each a trial of an Optuna study: TPE proposes, the median prunes.

    The journal is the whole state. A trial whose cell was interrupted stays open there, and the
    next start of the search goes on with it before it asks for others. What is proposed depends on
    the trials before and on the trial's number alone, so a search of one cell at a time is the same
    each time. All values are turned so that lower is better.
    """

    def __init__(
        self,
        axes: Sequence[Axis],
        folder: Path,
        place: Callable[[tuple[str, ...]], Cell],
        trials: int,
    ) -> None:
        import optuna

        self.axes, self.place, self.total = axes, place, trials
        self.cells: list[Cell] = []
        self._trials: dict[Path, list[int]] = {}  # of each run: two proposals may be the same
        self._sizes: dict[Path, int] = {}
        optuna.logging.set_verbosity(optuna.logging.WARNING)
        self._optuna: Any = optuna
        self._study = self._opened(folder / JOURNAL)
        self._open = self._begun()

    def _opened(self, path: Path) -> Any:
        with JsonlLog(path):  # a half line that a kill left is cut off
            pass
        backend = self._optuna.storages.journal.JournalFileBackend(str(path), lock_obj=NoLock())
        return self._optuna.create_study(
            storage=self._optuna.storages.JournalStorage(backend),
            study_name="grid",
            direction="minimize",
            pruner=self._optuna.pruners.MedianPruner(
                n_startup_trials=FIRST, n_warmup_steps=FIRST_EVALUATION
            ),
            load_if_exists=True,
        )

    def _begun(self) -> list[Cell]:
        """Makes the cells of the trials so far; gives those that go on."""
        waiting = []
        for trial in self._study.get_trials(deepcopy=False):
            cell = self._cell(trial.number)
            if trial.state.is_finished() and cell.state != "finished":
                cell.state = "pruned" if trial.state.name == "PRUNED" else "failed"
                cell.reason = str(trial.user_attrs.get("reason", ""))
            elif not trial.state.is_finished() and cell not in waiting:
                waiting.append(cell)
        return waiting

    def _cell(self, number: int) -> Cell:
        """The cell of a trial; of settings that were proposed before, that one."""
        trial = self._live(number)
        values = [_suggested(trial, axis) for axis in self.axes]  # those of before are kept
        words = (f"{axis.name}={value}" for axis, value in zip(self.axes, values, strict=True))
        placed = self.place(tuple(words))
        cell = next((cell for cell in self.cells if cell.folder == placed.folder), placed)
        if cell is placed:
            self.cells.append(cell)
        self._trials.setdefault(cell.folder, []).append(number)
        return cell

    def take(self) -> Cell | None:
        """The next cell: one that was interrupted, else a new proposal."""
        while True:
            if self._open:
                cell = self._open.pop(0)
            elif len(self._study.get_trials(deepcopy=False)) < self.total:
                cell = self._asked()
            else:
                return None
            if cell.state == "open":
                return cell
            if cell.state != "at work":  # known already, or it cannot be planned
                self.ended(cell)

    def _asked(self) -> Cell:
        number = len(self._study.get_trials(deepcopy=False))
        self._study.sampler = self._optuna.samplers.TPESampler(seed=number)
        self._study.ask()
        return self._cell(number)

    def hopeless(self, cell: Cell, /) -> str:
        """Tells the study what a cell has measured since, and asks whether it is to be stopped.

        Evaluations are compared by their numbers, so that cells with other steps can be.
        """
        path = cell.folder / "metrics.jsonl"
        with suppress(OSError):
            if path.stat().st_size == self._sizes.get(cell.folder):
                return ""
            self._sizes[cell.folder] = path.stat().st_size
        metric, sign, values = _measured(cell.folder)
        for number in self._trials[cell.folder]:
            trial = self._live(number)
            known = self._frozen(number).intermediate_values
            for place, (step, value) in enumerate(values, 1):
                if place in known or not math.isfinite(value):
                    continue
                trial.report(-sign * value, place)
                if trial.should_prune():
                    shown = format_value(metric, value)
                    return f"{metric} {shown} at step {step:,.0f} is worse than the median so far"
        return ""

    def ended(self, cell: Cell, /) -> None:
        """Reports a finished cell to the study; one that was killed stays open."""
        states = self._optuna.trial.TrialState
        for number in self._trials[cell.folder]:
            if self._frozen(number).state.is_finished() or cell.killed:
                continue
            found = Outcome.of(cell)
            if cell.state == "finished" and math.isfinite(found.rank):
                self._study.tell(number, found.rank)
                continue
            if cell.reason:
                self._live(number).set_user_attr("reason", cell.reason)
            state = states.PRUNED if cell.state == "pruned" else states.FAIL
            self._study.tell(number, state=state)

    def _frozen(self, number: int) -> Any:
        return self._study.get_trials(deepcopy=False)[number]

    def _live(self, number: int) -> Any:
        return self._optuna.trial.Trial(self._study, self._frozen(number)._trial_id)


class NoLock:
    """No lock: only one process at a time uses the journal, and a lock file would outlive it."""

    def acquire(self) -> bool:
        """It is had at once."""
        return True

    def release(self) -> None:
        """Nothing is kept."""


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


def _suggested(trial: Any, axis: Axis) -> str:
    """What a study proposes for a setting, as it is typed: numbers to four digits."""
    if axis.range is None:
        return str(trial.suggest_categorical(axis.name, axis.values))
    if axis.range == "int":
        return str(trial.suggest_int(axis.name, *map(int, axis.values)))
    low, high = map(float, axis.values)
    value = trial.suggest_float(axis.name, low, high, log=axis.range == "log")
    short = f"{value:.4g}"
    return short if low <= float(short) <= high else repr(value)
