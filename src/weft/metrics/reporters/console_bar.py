"""Reports on a terminal: a progress bar, and evaluations as rows of a table above it."""

import time as clock
from collections.abc import Mapping
from typing import TextIO, final

from rich.console import Console as Terminal
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text
from typing_extensions import override

from weft.metrics.metric import Direction
from weft.metrics.reporters.console_lines import Display, opening, rates
from weft.metrics.reporters.reporter import Progress, RunInfo
from weft.metrics.tables import format_duration, format_value
from weft.runtime.logging import printable

__all__ = ["BarDisplay", "ValuesTable"]

_SECONDS_BETWEEN_DRAWINGS = 0.1


@final
class BarDisplay(Display):
    """A bar drawn by whoever reports: no thread of its own takes time from training.

    Args:
        stream: A terminal.
    """

    def __init__(self, stream: TextIO) -> None:
        self._terminal = Terminal(file=stream, highlight=False, soft_wrap=True)
        self._bar: Bar | None = None
        self._table = ValuesTable({})
        self._total: int | None = None
        self._drawn = 0.0
        self._notes: list[str] = []
        self._eta: list[str] = []

    @override
    def start(self, info: RunInfo) -> None:
        self._table, self._total = ValuesTable(info.directions), info.total
        self.say(opening(info))

    @override
    def tick(self, progress: Progress) -> None:
        if clock.monotonic() - self._drawn >= _SECONDS_BETWEEN_DRAWINGS:
            self._draw(progress)

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        if split == "train":
            time = progress.get("time", {})
            shown = {k: v for k, v in values.items() if k in ("loss", "lr")}
            notes = [f"{name} {format_value(name, value)}" for name, value in shown.items()]
            self._notes = notes + rates(time)
            self._draw(progress)
            return
        for line in self._table.add(split, progress, values):
            self._terminal.print(line)

    @override
    def say(self, text: str) -> None:
        if text:
            self._terminal.print(printable(text), markup=False)

    @override
    def close(self) -> None:
        if self._bar:
            self._bar.refresh()
            self._bar.stop()
            self._bar = None

    def _draw(self, progress: Progress) -> None:
        self._drawn = clock.monotonic()
        eta = progress.get("time", {}).get("eta")
        if eta is not None:
            self._eta = [f"eta {format_duration(eta)}"]
        step, total = int(progress.get("step", 0)), progress.get("total", self._total)
        steps = f"{step:,}/{total:,} steps" if total else f"{step:,} steps"
        text = " · ".join([steps, *self._eta, *self._notes])
        if self._bar is None:
            self._bar = _new_bar(self._terminal)
            self._bar.add_task("train", completed=step, total=total, text=text)
            self._bar.start()
            self._terminal.show_cursor(True)  # rich hides it; nobody would undo it after a SIGKILL
        self._bar.update(self._bar.task_ids[0], completed=step, total=total, text=text)
        self._bar.refresh()


def _new_bar(terminal: Terminal) -> Bar:
    # One column for all text: on a narrow terminal its end is cut, and never the steps.
    text = TextColumn("{task.fields[text]}", markup=False)
    return Bar(BarColumn(bar_width=16), text, console=terminal, auto_refresh=False)


@final
class ValuesTable:
    """A table that grows by a row per evaluation; its header is repeated where the columns change.

    Args:
        directions: For each value, which values are better; the best so far are bold.

    Example:
        >>> table = ValuesTable({"bleu": "higher"})
        >>> for line in table.add(
        ...     "valid", {"step": 1000, "epoch": 2.0}, {"loss": 2.5, "bleu": 28.3}
        ... ):
        ...     print(line.plain)
        split     step  epoch    loss    bleu
        valid    1,000    2.0   2.500   28.30
    """

    def __init__(self, directions: Mapping[str, Direction]) -> None:
        self._directions = directions
        self._best: dict[tuple[str, str], float] = {}
        self._columns: list[str] = []

    def add(self, split: str, progress: Progress, values: Mapping[str, float]) -> list[Text]:
        """The lines to print for one evaluation."""
        lines = []
        if self._columns != list(values):
            self._columns = list(values)
            titles = [f"{'split':<5} {'step':>8} {'epoch':>6}", *(_cell(n, n) for n in values)]
            lines.append(Text(" ".join(titles), style="dim"))
        epoch = f"{progress['epoch']:.1f}" if "epoch" in progress else ""
        row = Text(f"{split:<5} {int(progress.get('step', 0)):>8,} {epoch:>6}")
        for name, value in values.items():
            style = "bold" if self._is_best(split, name, value) else ""
            row.append(" ").append(_cell(name, format_value(name, value)), style=style)
        return [*lines, row]

    def _is_best(self, split: str, name: str, value: float) -> bool:
        way, before = self._directions.get(name), self._best.get((split, name))
        if way is None or value != value:
            return False
        if before is not None and (value <= before if way == "higher" else value >= before):
            return False
        self._best[split, name] = value
        return before is not None  # the first is no progress yet


def _cell(name: str, text: str) -> str:
    return text.rjust(max(len(name), 7))
