"""A grid of runs: a pool that calls ``textmill train`` for each cell until none is left.

A search is a grid whose cells Optuna proposes; it sees what they measure, and stops hopeless ones.
"""

import hashlib
import json
import logging
import math
import re
import shlex
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.errors import InUseError, RunStoppedError, TextmillError, UserError
from textmill.launch.cells import Axis, Cell, GridWords, Named, check_first, place_cell, plan_cells
from textmill.launch.grid_table import GridTable, Outcome, grid_html
from textmill.launch.launcher import Launcher, launcher_of
from textmill.launch.ray import Ray
from textmill.launch.slurm import Slurm
from textmill.metrics.tables import format_duration, format_eta, format_value
from textmill.recipes.planning import run_named
from textmill.run_folder.folder import RunFolder, command_line
from textmill.run_folder.record import numbers, selected_by
from textmill.runs.resume import LENGTH
from textmill.runs.study import JOURNAL, Study, import_optuna
from textmill.runtime.files import write_atomic
from textmill.runtime.jsonl_log import read_lines
from textmill.runtime.lock import Lock, owner_of
from textmill.runtime.signals import StopSignals

LOG = logging.getLogger("textmill")
PAUSE = 0.05
"""Seconds between two looks at the processes."""
MOST_REASON = 2_000
"""Characters of a failure that are printed; the cell's log has all of it."""
STOPPED = {-signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGINT}
"""Exit codes of a run that was asked to save and end."""
FIRST = 5
"""Cells of a search that are trained to their end before any is stopped."""
FIRST_EVALUATION = 2
"""The evaluation from which on a cell may be stopped: many settings are slow at first."""
COMMAND = "textmill grid --search optuna"

Show = Callable[[str], None]


class Cells:
    """The cells of a grid, in order; a search adds cells as it goes."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = list(cells)
        """The cells that are known so far."""
        self.total = len(cells)
        """How many there will be."""

    def take(self) -> Cell | None:
        """The next cell to train; None if there is none now."""
        return next((cell for cell in self.cells if cell.state == "open"), None)

    def hopeless(self, cell: Cell) -> str:
        """Why a cell at work should be stopped; empty if it should not."""
        return ""

    def ended(self, cell: Cell) -> None:
        """Is called when a cell has ended."""

    def those(self, *states: str) -> list[Cell]:
        return [cell for cell in self.cells if cell.state in states]


class Grid:
    """Trains cells, each by a command of its own, as many at a time as the launcher has places.

    ``textmill train`` goes on with a run that was interrupted, and refuses one that another process
    trains. So a grid keeps no state: killed at any moment and started again, it calls the same
    commands, and waits for cells that another process trains.
    """

    def __init__(
        self,
        named: Named,
        source: Cells,
        launcher: Launcher,
        folder: Path,
        *,
        fail_fast: bool = False,
        show: Show = lambda line: None,
    ) -> None:
        self.named, self.source, self.launcher = named, source, launcher
        self.logs, self.fail_fast, self.show = folder / "logs", fail_fast, show
        self.at_work: list[Cell] = []
        self.seconds: list[float] = []
        self.stopping = ""
        """Why no more cells are started; empty while they are."""

    def run(self) -> None:
        """Trains what is not finished."""
        self.logs.mkdir(parents=True, exist_ok=True)
        jobs, threads = self.launcher.jobs, self.launcher.threads
        text = "%s cells, %s of them ended before; %s at a time, %s thread%s each"
        LOG.info(text, self.source.total, self.count, jobs, threads, "s" * (threads > 1))
        with StopSignals() as stop:
            try:
                while self.fill():
                    self.look()
                    if stop.received is not None:
                        self.stop("stopped")
                    elif self.fail_fast and self.source.those("failed"):
                        self.stop("a cell failed (--fail-fast)")
                    self.show(self.progress())
                    time.sleep(PAUSE)
            except BaseException:  # no process of ours outlives a driver that ends by itself
                for cell in self.at_work:
                    if cell.job is not None:
                        cell.job.kill()
                raise
            if stop.received is not None and self.stopping:
                raise RunStoppedError(
                    stop.received,
                    f"Stopped by {signal.Signals(stop.received).name}: {self.count} of "
                    f"{self.source.total} cells have ended, and those at work have saved. The same "
                    "command goes on from here.",
                )

    def fill(self) -> bool:
        while not self.stopping and len(self.at_work) < self.launcher.jobs:
            if (cell := self.source.take()) is None:
                break
            self.start(cell)
        return bool(self.at_work)

    def start(self, cell: Cell) -> None:
        """Starts a cell, or waits for the process that has its folder already."""
        cell.state, cell.log = "at work", self.logs / f"{cell.folder.name}.txt"
        cell.job, cell.asked, cell.since = None, None, time.monotonic()
        if (owner := owner_of(cell.folder)) is not None:
            LOG.info("%s: %s trains it already; it is waited for.", cell.label, owner)
        elif not is_done(cell):
            folder = str(cell.folder)
            words = [*self.named.command(cell.words), "--run-dir", folder]
            cell.job = self.launcher.start(words, cell.log, folder)
        self.at_work.append(cell)

    def look(self) -> None:
        """Handles the cells that have ended, and stops the hopeless ones."""
        for cell in list(self.at_work):
            code = cell.job.poll() if cell.job else None
            if code is not None or (cell.job is None and owner_of(cell.folder) is None):
                self.at_work.remove(cell)
                self.ended(cell, code)
            elif cell.job and not cell.asked and (why_not := self.source.hopeless(cell)):
                cell.asked = "pruned", why_not
                cell.job.stop()

    def stop(self, reason: str) -> None:
        """Lets the cells at work save and end; those that another process trains go on."""
        self.stopping = self.stopping or reason
        for cell in list(self.at_work):
            if cell.job is None:
                self.at_work.remove(cell)
                cell.state = "open"
            elif cell.asked is None:
                cell.asked = "stopped", self.stopping
                cell.job.stop()

    def ended(self, cell: Cell, code: int | None) -> None:
        """Handles a cell whose process has ended; another process may have it by now."""
        took = time.monotonic() - cell.since
        if is_done(cell):
            cell.state, cell.reason = "finished", ""
        elif code is None or owner_of(cell.folder) is not None:
            cell.state = "open"
            if not self.stopping:
                self.start(cell)
            return
        elif cell.asked and code in STOPPED:
            cell.state, cell.reason = cell.asked
        else:
            cell.state, cell.reason = "failed", why(cell.log, code)
            cell.killed = code < 0 or code > 128
        if cell.state == "stopped":
            return
        self.source.ended(cell)
        place = f"[{self.count}/{self.source.total}] {cell.label}"
        if cell.state == "failed":
            LOG.error("%s failed: %s", place, cell.reason)
            LOG.error("  its command: %s", cell.typed(self.named))
            LOG.error("  its log: %s", cell.log)
            return
        self.seconds.append(took)
        finished = cell.state == "finished"
        outcome = f": {result_line(cell.folder)}" if finished else f" pruned: {cell.reason}"
        LOG.info("%s%s (%s)", place, outcome, format_duration(took))

    @property
    def count(self) -> int:
        return len(self.source.those("finished", "pruned", "failed"))

    def progress(self) -> str:
        """How far the grid is, with the time left, estimated from the cells so far."""
        if self.stopping:
            return f"waiting for cells to save: {len(self.at_work)}"
        parts = [f"{self.count} of {self.source.total} cells ended"]
        failed = len(self.source.those("failed"))
        parts += [f"{failed} failed"] if failed else []
        parts += [f"{len(self.at_work)} at work"]
        if self.seconds:
            now, mean = time.monotonic(), sum(self.seconds) / len(self.seconds)
            begun = sum(min(now - cell.since, mean) for cell in self.at_work)
            left = mean * (self.source.total - self.count) - begun
            parts.append(format_eta(left / self.launcher.jobs))
        return " · ".join(parts)


def is_done(cell: Cell) -> bool:
    """Whether the run is finished at the cell's length; False if it cannot be read."""
    with suppress(TextmillError, OSError):
        run = RunFolder(cell.folder)
        return run.finished and run.info.get("length", {}) == cell.length
    return False


def result_line(folder: Path) -> str:
    result = RunFolder(folder).result
    best = numbers(result.get("best") or {}, ())
    step = best.pop("step", result.get("steps", 0))
    shown = ", ".join(f"{name} {format_value(name, value)}" for name, value in best.items())
    return f"{shown or 'finished'} at step {step:,.0f}"


def why(log: Path | None, code: int) -> str:
    """Why a process has ended: the error that it printed, or the signal that killed it."""
    output = ""
    if log is not None:
        with suppress(OSError):
            output = log.read_text(encoding="utf-8", errors="replace")
    errors = re.split(r"^error: ", output, flags=re.MULTILINE)
    if len(errors) > 1:
        return errors[-1].strip()[:MOST_REASON]
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        hint = ", by hand or because memory ran out" if number == signal.SIGKILL else ""
        return f"killed by {signal.Signals(number).name}{hint}"
    last = output.strip().rpartition("\n")[2]
    return f"exit code {code}{': ' * bool(last)}{last}"[:MOST_REASON]


class OptunaSearch(Cells):
    """Cells that are trials of an Optuna study: TPE proposes, the median prunes.

    A trial whose cell was interrupted stays open in the journal, and the next start of the search
    goes on with it. A search of one cell at a time proposes the same each time. Values are negated
    if higher is better.
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
        self._trials: dict[Path, dict[int, Any]] = {}  # one cell may be proposed several times
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
        """The cell of a trial; a known one if its settings were proposed before."""
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
        """Reports new values of a cell to the study, and asks whether to stop the cell.

        Evaluations are compared by their numbers, so that the steps of cells may differ.
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
    """The value that a run at work is selected by, its sign, and its values and steps so far."""
    with suppress(TextmillError, OSError):
        metric, sign = selected_by(RunFolder(folder).info)
        lines = [*read_lines(folder / "metrics.jsonl")]
        found = [numbers(line, ()) for line in lines if line.get("split") == "valid"]
        return metric, sign, [(v["step"], v[metric]) for v in found if metric in v and "step" in v]
    return "", 1.0, []


def _space(distributions: Any, axis: Axis) -> Any:
    if axis.range is None:
        return distributions.CategoricalDistribution(axis.values)
    if axis.range == "int":
        return distributions.IntDistribution(*map(int, axis.values))
    return distributions.FloatDistribution(*map(float, axis.values), log=axis.range == "log")


def _typed(value: Any, axis: Axis) -> str:
    """A proposed value as it is typed, with four digits."""
    if not isinstance(value, float):
        return str(value)
    low, high = map(float, axis.values)
    return f"{value:.4g}" if low <= float(f"{value:.4g}") <= high else repr(value)


def run_grid(
    named: Named,
    words: Sequence[str],
    *,
    seeds: int | None = None,
    trials: int | None = None,
    jobs: int | None = None,
    fail_fast: bool = False,
    elsewhere: Slurm | Ray | None = None,
    show: Show = lambda line: None,
) -> tuple[Path, GridTable]:
    """Trains a recipe with each combination of values, or with those that a search proposes.

    Settings with commas between values vary. Optuna proposes as many combinations as ``trials``
    says; None trains all there are. The cells run on this machine, or ``elsewhere``; ``show`` is
    called again and again with how far the grid is.

    Returns:
        The folder of its tables, page and logs; and the table of its cells, which have ended.
    """
    searches = trials is not None
    asked = read_words(named, words, seeds, search=searches)
    wanted = asked.corners() if searches else list(asked.cells())
    cells = plan_cells(named, asked.fixed, wanted, say=show)
    launcher = launcher_of(elsewhere, jobs=jobs, device=named.device, commands=trials or len(cells))
    planned = named.plan(cells[0].words)
    if searches and "valid_data" not in planned.plan.order:
        raise UserError(
            "a search compares runs by trainer.selection.metric, which is measured on valid_data, "
            "and this recipe has none. Give it valid_data.path=..., or train_data.holdout=0.1."
        )
    kind = "search" if searches else "grid"
    folder = RunFolder.place(planned.name, f"{kind}-{identity(named, asked, searches)}").path
    if (owner := owner_of(folder)) is not None:
        raise InUseError(
            f"this grid is trained by {owner} already ({folder}). Wait for it to end or stop it."
        )
    if not (folder / JOURNAL).exists():
        show("checking the first cell")
        if notes := check_first(named, cells):
            LOG.info("note: %s", notes)
    folder.mkdir(parents=True, exist_ok=True)
    with Lock(folder, {"logs": True}):
        source = Cells(cells)
        if trials is not None:
            place = partial(place_cell, named, asked.fixed)
            source = OptunaSearch(asked.axes, folder, place, trials)
        grid = Grid(named, source, launcher, folder, fail_fast=fail_fast, show=show)
        try:
            grid.run()
        finally:
            table = GridTable(asked.axes, source.cells)
            write_atomic(folder / "table.tsv", table.tsv())
            if table.seeded:
                write_atomic(folder / "cells.tsv", table.cells_tsv())
            page = grid_html(table, f"{planned.name}: {kind}", shlex.join(command_line()))
            write_atomic(folder / "report.html", page)
    return folder, table


def read_words(named: Named, words: Sequence[str], seeds: int | None, *, search: bool) -> GridWords:
    """Reads the words; prints and uses the whole names of settings that were typed short."""
    if run_named(named.recipe) is not None:
        raise UserError(
            f"{named.recipe} is a run, which textmill train continues. A grid trains anew: name "
            f"its recipe, or {Path(named.recipe) / 'config.yaml'}."
        )
    asked = GridWords.read(words, seeds, search=search)
    if not asked.axes:
        raise UserError(
            "nothing varies. Give a setting several values with commas between, lr=1e-4,3e-4, or "
            "ask for --seeds."
        )
    meant = named.plan([*asked.fixed, *asked.corners()[0]], draft=True).plan.meant
    for name, whole in meant.items():
        LOG.info("%s sets %s", name, whole)
    return asked.in_full(meant)


def identity(named: Named, asked: GridWords, searches: bool) -> str:
    """A hash of a grid's recipe, of the settings of all cells, and of the names of the axes.

    Values, number of seeds and length are not in it, as they can be raised. For a search they are:
    what it has seen in one space, or of short runs, says nothing about another.
    """
    axes = [(a.name, a.values, a.range) if searches else a.name for a in asked.axes]
    lengths = () if searches else tuple(f"trainer.{name}=" for name in LENGTH)
    fixed = sorted(word for word in asked.fixed if not word.startswith(lengths))
    content = [named.recipe, named.configs, fixed, sorted(axes)]
    return hashlib.sha256(json.dumps(content).encode()).hexdigest()[:8]
