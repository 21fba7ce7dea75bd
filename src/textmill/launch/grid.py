"""A grid of runs: started, watched and gone on with until every cell is finished or failed."""

import logging
import re
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from textmill.errors import RunStoppedError, TextmillError
from textmill.launch.cells import Cell, Named
from textmill.launch.launcher import Job, Launcher
from textmill.metrics.tables import format_duration, format_eta, format_value
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import numbers
from textmill.runtime.lock import owner_of
from textmill.runtime.signals import StopSignals

LOG = logging.getLogger("textmill")
PAUSE = 0.05
"""Seconds between two looks at the processes."""
MOST_REASON = 2_000
"""Characters of a failure that are told; all of it is in the cell's log."""

Show = Callable[[str], None]


@dataclass
class CellRun:
    """A cell at work: by a job of this grid, or of one before; or another's, None."""

    cell: Cell
    job: Job | None
    since: float
    hopeless: str = ""
    """Why it was stopped before its end; empty of one that was not."""
    left: bool = False
    """Whether a grid before this one started it."""

    def stop(self) -> bool:
        """Asks it to save and end, if it can be asked; what another process trains cannot."""
        return self.job is not None and self.job.stop()


class CellSource(Protocol):
    """Which cells are trained, and in which order."""

    cells: list[Cell]
    """Those that are known so far."""
    total: int
    """How many there will be."""

    def take(self) -> Cell | None:
        """The next cell to train; None where there is none now."""
        ...

    def hopeless(self, cell: Cell, /) -> str:
        """Why a cell at work is to be stopped; empty where it is not."""
        ...

    def ended(self, cell: Cell, /) -> None:
        """Takes note of what came of a cell."""
        ...


class AllCells:
    """Cells that are known from the start, in their order; every one is trained to its end."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells, self.total = list(cells), len(cells)
        self._waiting = [cell for cell in self.cells if cell.state != "finished"]

    def take(self) -> Cell | None:
        """The next cell."""
        return self._waiting.pop(0) if self._waiting else None

    def hopeless(self, cell: Cell, /) -> str:
        """Nothing stops a cell."""
        return ""

    def ended(self, cell: Cell, /) -> None:
        """No cell depends on another."""


class Grid:
    """Trains cells, each by a command of its own, as many at a time as the launcher has places.

    Killed at any moment and started again it goes on: what a cell is stands in its run folder
    alone. A cell that another process trains is waited for, and no second one is started.
    """

    def __init__(
        self,
        named: Named,
        source: CellSource,
        launcher: Launcher,
        folder: Path,
        *,
        fail_fast: bool = False,
        show: Show = lambda line: None,
    ) -> None:
        self.named, self.source, self.launcher = named, source, launcher
        self.logs, self.fail_fast, self.show = folder / "logs", fail_fast, show
        self.at_work: list[CellRun] = []
        self.seconds: list[float] = []

    def run(self) -> None:
        """Trains what is not finished.

        Raises:
            RunStoppedError: A signal came: the cells at work have saved.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        told = f"{self.source.total} cells, {self.ended_cells} of them ended before"
        jobs, threads = self.launcher.jobs, self.launcher.threads
        plural = "s" * (threads > 1)
        LOG.info("%s; %s at a time, %s thread%s each", told, jobs, threads, plural)
        with StopSignals() as stop:
            try:
                while self.fill():
                    self.look()
                    if self.fail_fast and self.failed:
                        self.give_up("a cell failed (--fail-fast)")
                        break
                    if stop.received is not None:
                        self.give_up("stopped")
                        raise RunStoppedError(stop.received, self.stopped_by(stop.received))
                    self.show(self.progress())
                    time.sleep(PAUSE)
            except BaseException:  # no process of ours outlives a driver that ends by itself
                for run in self.at_work:
                    if run.job is not None:
                        run.job.kill()
                raise

    def fill(self) -> bool:
        """Starts as many cells as there are places; tells whether any is at work."""
        while len(self.at_work) < self.launcher.jobs and (cell := self.source.take()):
            self.start(cell)
        return bool(self.at_work)

    @property
    def failed(self) -> list[Cell]:
        """The cells that failed."""
        return [cell for cell in self.source.cells if cell.state == "failed"]

    @property
    def finished(self) -> list[Cell]:
        """The cells that are finished."""
        return [cell for cell in self.source.cells if cell.state == "finished"]

    def start(self, cell: Cell) -> CellRun:
        """Starts a cell, or waits for the job or the process that has its folder already."""
        cell.state, cell.log = "at work", self.logs / f"{cell.folder.name}.txt"
        name = str(cell.folder)
        run = CellRun(cell, self.launcher.left(cell.log, name), time.monotonic())
        run.left = run.job is not None
        if run.left:
            LOG.info("%s: a grid before this one started it; it is waited for.", cell.label)
        elif (owner := owner_of(cell.folder)) is not None:
            LOG.info("%s: %s trains it already; it is waited for.", cell.label, owner)
        elif not is_done(cell):  # it may be by now, by a job of before
            words = [*self.named.command(cell.words), "--extend", "--run-dir", name]
            run.job = self.launcher.start(words, cell.log, name)
        self.at_work.append(run)
        return run

    def look(self) -> None:
        """Takes note of the cells that have ended, and stops those that are hopeless."""
        for run in list(self.at_work):
            code = run.job.poll() if run.job else None
            if code is not None or (run.job is None and owner_of(run.cell.folder) is None):
                self.at_work.remove(run)
                self.ended(run, None if run.left else code)
            elif run.job is not None and not run.hopeless:
                run.hopeless = self.source.hopeless(run.cell)
                if run.hopeless:
                    run.stop()

    def ended(self, run: CellRun, code: int | None) -> None:
        """What came of a cell whose process has ended; it may go on elsewhere."""
        cell, took = run.cell, format_duration(time.monotonic() - run.since)
        if is_done(cell):
            cell.state, cell.reason = "finished", ""
            self.seconds.append(time.monotonic() - run.since)
            self.source.ended(cell)
            LOG.info("%s %s: %s (%s)", self.count(), cell.label, result_line(cell.folder), took)
        elif code is None or owner_of(cell.folder) is not None:  # it was another's, or still is
            self.start(cell)
        elif run.hopeless and code in STOPPED:
            cell.state, cell.reason = "pruned", run.hopeless
            self.seconds.append(time.monotonic() - run.since)
            self.source.ended(cell)
            LOG.info("%s %s pruned: %s (%s)", self.count(), cell.label, cell.reason, took)
        else:
            cell.state, cell.reason = "failed", why(cell.log, code)
            cell.killed = code < 0 or code > 128
            self.source.ended(cell)
            LOG.error("%s %s failed: %s", self.count(), cell.label, cell.reason)
            LOG.error("  its command: %s", cell.typed(self.named))
            LOG.error("  its log: %s", cell.log)

    def give_up(self, reason: str) -> None:
        """Lets the cells at work save and end; those that another process trains go on."""
        asked = [run for run in self.at_work if run.stop()]
        while mine := [run for run in asked if run in self.at_work]:
            for run in mine:
                code = run.job.poll() if run.job is not None else None
                if code in STOPPED and not is_done(run.cell):
                    self.at_work.remove(run)
                    run.cell.state, run.cell.reason = "stopped", reason
                elif code is not None:  # it was at its end, or failed
                    self.at_work.remove(run)
                    self.ended(run, code)
            self.show(f"waiting for cells to save: {len(mine)}")
            time.sleep(PAUSE)
        for run in self.at_work:
            run.cell.state = "open"
        self.at_work.clear()

    def stopped_by(self, number: int) -> str:
        """What a person is told who stopped the grid."""
        return (
            f"Stopped by {signal.Signals(number).name}: {self.ended_cells} of {self.source.total} "
            "cells have ended, and those at work have saved. The same command goes on from here."
        )

    @property
    def ended_cells(self) -> int:
        """How many cells are finished, were pruned or have failed."""
        ended = ("finished", "pruned", "failed")
        return sum(cell.state in ended for cell in self.source.cells)

    def count(self) -> str:
        """How many cells have ended."""
        return f"[{self.ended_cells}/{self.source.total}]"

    def progress(self) -> str:
        """A line of how far the grid is, with the time that is left by that of its cells so far."""
        parts = [f"{self.ended_cells} of {self.source.total} cells ended"]
        parts += [f"{len(self.failed)} failed"] if self.failed else []
        parts += [f"{len(self.at_work)} at work"]
        if self.seconds:
            now, mean = time.monotonic(), sum(self.seconds) / len(self.seconds)
            begun = sum(min(now - run.since, mean) for run in self.at_work)
            left = mean * (self.source.total - self.ended_cells) - begun
            parts.append(format_eta(left / self.launcher.jobs))
        return " · ".join(parts)


STOPPED = {-signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGINT}


def is_done(cell: Cell) -> bool:
    """Whether a run is finished at the cell's length; one that cannot be read is not."""
    with suppress(TextmillError, OSError):
        run = RunFolder(cell.folder)
        return run.finished and run.info.get("length", {}) == cell.length
    return False


def result_line(folder: Path) -> str:
    """What a finished run reached."""
    result = RunFolder(folder).result
    best = numbers(result.get("best") or {}, ())
    step = best.pop("step", result.get("steps", 0))
    shown = ", ".join(f"{name} {format_value(name, value)}" for name, value in best.items())
    return f"{shown or 'finished'} at step {step:,.0f}"


def why(log: Path | None, code: int) -> str:
    """Why a process has ended, by what it printed: its error, or the signal that killed it."""
    said = ""
    if log is not None:
        with suppress(OSError):
            said = log.read_text(encoding="utf-8", errors="replace")
    errors = re.split(r"^error: ", said, flags=re.MULTILINE)
    if len(errors) > 1:
        return errors[-1].strip()[:MOST_REASON]
    number = -code if code < 0 else code - 128
    if number in set(signal.Signals):
        hint = ", by hand or because memory ran out" if number == signal.SIGKILL else ""
        return f"killed by {signal.Signals(number).name}{hint}"
    last = said.strip().rpartition("\n")[2]
    return f"exit code {code}{': ' * bool(last)}{last}"[:MOST_REASON]
