"""A grid of runs: a pool that calls ``textmill train`` for each cell until none is left."""

import logging
import re
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

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
STOPPED = {-signal.SIGTERM, 128 + signal.SIGTERM, -signal.SIGINT, 128 + signal.SIGINT}
"""Exit codes of a run that was asked to save and end."""

Show = Callable[[str], None]


class Cells:
    """The cells of a grid, in their order. A search is one that finds its cells as it goes."""

    def __init__(self, cells: Sequence[Cell]) -> None:
        self.cells = list(cells)
        """Those that are known so far."""
        self.total = len(cells)
        """How many there will be."""

    def take(self) -> Cell | None:
        """The next cell to train; None if there is none now."""
        return next((cell for cell in self.cells if cell.state == "open"), None)

    def hopeless(self, cell: Cell) -> str:
        """Why a cell at work is to be stopped; empty if it is not."""
        return ""

    def ended(self, cell: Cell) -> None:
        """Takes note of what came of a cell."""

    def those(self, *states: str) -> list[Cell]:
        """The cells in one of these states."""
        return [cell for cell in self.cells if cell.state in states]


@dataclass
class CellRun:
    """A cell at work: by a job of this grid, or by another process (no job)."""

    cell: Cell
    job: Job | None
    since: float
    asked: tuple[str, str] | None = None
    """The state it gets, and why, as it was asked to save and end."""

    def stop(self, state: str, reason: str) -> None:
        """Asks it to save and end; the same command goes on with it."""
        if self.asked is None and self.job is not None:
            self.asked = state, reason
            self.job.stop()


class Grid:
    """Trains cells, each by a command of its own, as many at a time as the launcher has places.

    ``textmill train`` goes on with a run that was interrupted, and refuses one that another process
    trains. So nothing is kept of a grid: killed at any moment and started again, it calls the same
    commands. A cell that another process trains is waited for.
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
        self.at_work: list[CellRun] = []
        self.seconds: list[float] = []
        self.stopping = ""
        """Why no more cells are started; empty while they are."""

    def run(self) -> None:
        """Trains what is not finished.

        Raises:
            RunStoppedError: A signal came: the cells at work have saved.
        """
        self.logs.mkdir(parents=True, exist_ok=True)
        told = f"{self.source.total} cells, {self.count} of them ended before"
        jobs, threads = self.launcher.jobs, self.launcher.threads
        plural = "s" * (threads > 1)
        LOG.info("%s; %s at a time, %s thread%s each", told, jobs, threads, plural)
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
                for run in self.at_work:
                    if run.job is not None:
                        run.job.kill()
                raise
            if stop.received is not None and self.stopping:
                raise RunStoppedError(
                    stop.received,
                    f"Stopped by {signal.Signals(stop.received).name}: {self.count} of "
                    f"{self.source.total} cells have ended, and those at work have saved. The same "
                    "command goes on from here.",
                )

    def fill(self) -> bool:
        """Starts as many cells as there are places; tells whether any is at work."""
        while not self.stopping and len(self.at_work) < self.launcher.jobs:
            if (cell := self.source.take()) is None:
                break
            self.start(cell)
        return bool(self.at_work)

    def start(self, cell: Cell) -> None:
        """Starts a cell, or waits for the process that has its folder already."""
        cell.state, cell.log = "at work", self.logs / f"{cell.folder.name}.txt"
        run = CellRun(cell, None, time.monotonic())
        if (owner := owner_of(cell.folder)) is not None:
            LOG.info("%s: %s trains it already; it is waited for.", cell.label, owner)
        elif not is_done(cell):
            folder = str(cell.folder)
            words = [*self.named.command(cell.words), "--run-dir", folder]
            run.job = self.launcher.start(words, cell.log, folder)
        self.at_work.append(run)

    def look(self) -> None:
        """Takes note of the cells that have ended, and stops those that are hopeless."""
        for run in list(self.at_work):
            code = run.job.poll() if run.job else None
            if code is not None or (run.job is None and owner_of(run.cell.folder) is None):
                self.at_work.remove(run)
                self.ended(run, code)
            elif run.job and not run.asked and (why_not := self.source.hopeless(run.cell)):
                run.stop("pruned", why_not)

    def stop(self, reason: str) -> None:
        """Lets the cells at work save and end; those that another process trains go on."""
        self.stopping = self.stopping or reason
        for run in list(self.at_work):
            if run.job is None:
                self.at_work.remove(run)
                run.cell.state = "open"
            run.stop("stopped", self.stopping)

    def ended(self, run: CellRun, code: int | None) -> None:
        """What came of a cell whose process has ended; another one may have it by now."""
        cell, took = run.cell, format_duration(time.monotonic() - run.since)
        if is_done(cell):
            cell.state, cell.reason = "finished", ""
        elif code is None or owner_of(cell.folder) is not None:
            cell.state = "open"
            if not self.stopping:
                self.start(cell)
            return
        elif run.asked and code in STOPPED:
            cell.state, cell.reason = run.asked
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
        self.seconds.append(time.monotonic() - run.since)
        told = f" pruned: {cell.reason}"
        if cell.state == "finished":
            told = f": {result_line(cell.folder)}"
        LOG.info("%s%s (%s)", place, told, took)

    @property
    def count(self) -> int:
        """How many cells are finished, were pruned or have failed."""
        return len(self.source.those("finished", "pruned", "failed"))

    def progress(self) -> str:
        """A line of how far the grid is, with the time that is left by that of its cells so far."""
        if self.stopping:
            return f"waiting for cells to save: {len(self.at_work)}"
        parts = [f"{self.count} of {self.source.total} cells ended"]
        failed = len(self.source.those("failed"))
        parts += [f"{failed} failed"] if failed else []
        parts += [f"{len(self.at_work)} at work"]
        if self.seconds:
            now, mean = time.monotonic(), sum(self.seconds) / len(self.seconds)
            begun = sum(min(now - run.since, mean) for run in self.at_work)
            left = mean * (self.source.total - self.count) - begun
            parts.append(format_eta(left / self.launcher.jobs))
        return " · ".join(parts)


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
