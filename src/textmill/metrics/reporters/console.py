"""The console: a progress bar and a table for a person, plain lines for a file.

A log file of a cluster job gets one line per report, without carriage returns and escape codes:
bars in such files have filled disks.
"""

import importlib
import os
import sys
import time as clock
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from html import escape
from itertools import chain, pairwise
from typing import Any, Literal, TextIO

from rich.console import Console as Terminal
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text
from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.metrics import registries
from textmill.metrics.metric import Direction
from textmill.metrics.reporters.reporter import Progress, Reporter, RunInfo
from textmill.metrics.tables import format_eta, format_rate, format_value, is_of_label, labels_table
from textmill.runtime.jsonl_log import read_lines
from textmill.runtime.logging import printable

_SECONDS_BETWEEN_DRAWINGS = 0.1
_BAR = 16
"""Characters of the bar."""
_NOTEBOOK = 110
"""Characters of a line in a notebook."""


class Display(Reporter):
    """One way to show a run on a stream."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Shows a line of text."""


class LinesDisplay(Display):
    """One line per report; none per step."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream

    @override
    def start(self, info: RunInfo) -> None:
        self.say(opening(info))

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        self.say(plain_line(split, progress, values))

    @override
    def say(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        try:
            text.encode(encoding)
        except UnicodeEncodeError:  # LANG=C: a middle dot must not end a run
            text = text.replace("·", "|").encode(encoding, "replace").decode(encoding)
        if text:
            self._stream.write(f"{printable(text)}\n")
            self._stream.flush()


def opening(info: RunInfo) -> str:
    parts = [info.recipe, str(info.folder) if info.folder else ""]
    parts += named_values(info.facts)
    parts.append(f"goes on after step {info.step:,}" if info.step else "")
    return " · ".join(part for part in parts if part)


def plain_line(split: str, progress: Progress, values: Mapping[str, float]) -> str:
    time = progress.get("time", {})
    step = f"step {int(progress.get('step', 0)):,}"
    parts = [step if split == "train" else f"{split} at {step}"]
    if split == "train" and "epoch" in progress:
        parts.append(f"epoch {progress['epoch']:.1f}")
    parts += [*named_values(values), *rates(time)]
    if split == "train" and time.get("eta") is not None:
        parts.append(format_eta(time["eta"]))
    return " · ".join(parts)


def rates(time: Mapping[str, float]) -> list[str]:
    return [format_rate(k, v) for k, v in time.items() if k.endswith("_per_second")]


def named_values(values: Mapping[str, object]) -> list[str]:
    """Values as people read them, each after its name."""
    return [f"{name} {format_value(name, value)}" for name, value in values.items()]


class BarDisplay(Display):
    """A bar on a terminal, drawn by whoever reports: no thread takes time from training."""

    def __init__(self, stream: TextIO) -> None:
        self._terminal = Terminal(file=stream, highlight=False, soft_wrap=True)
        self._bar: Bar | None = None
        self._table = ValuesTable({})
        self._total: int | None = None
        self._drawn = 0.0
        self._notes: list[str] = []

    @override
    def start(self, info: RunInfo) -> None:
        self._table = ValuesTable(info.directions, selected=info.selected)
        self._total = info.total
        self.say(opening(info))

    @override
    def tick(self, progress: Progress) -> None:
        if clock.monotonic() - self._drawn >= _SECONDS_BETWEEN_DRAWINGS:
            self._draw(progress)

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        if split == "train":
            shown = {k: v for k, v in values.items() if k in ("loss", "lr")}
            self._notes = [*named_values(shown), *rates(progress.get("time", {}))]
            self._draw(progress)
            return
        for line in self._table.add(split, progress, values, width=self._width):
            self._print(line)

    @override
    def say(self, text: str) -> None:
        if text:
            self._print(Text(printable(text)))

    @property
    def _width(self) -> int:
        return self._terminal.width

    def _print(self, line: Text) -> None:
        self._terminal.print(line)

    @override
    def close(self) -> None:
        if self._bar:
            self._bar.refresh()
            self._bar.stop()
            self._bar = None

    def _draw(self, progress: Progress) -> None:
        self._drawn = clock.monotonic()
        eta = progress.get("time", {}).get("eta")
        left = [] if eta is None else [format_eta(eta)]
        step, total = int(progress.get("step", 0)), progress.get("total", self._total)
        steps = f"{step:,}/{total:,} steps" if total else f"{step:,} steps"
        self._show(step, total, _joined([steps, *left, *self._notes], self._width - _BAR - 1))

    def _show(self, step: int, total: int | None, text: str) -> None:
        if self._bar is None:
            column = TextColumn("{task.fields[text]}", markup=False)
            shown = (BarColumn(bar_width=_BAR), column)
            self._bar = Bar(*shown, console=self._terminal, auto_refresh=False)
            self._bar.add_task("train", completed=step, total=total, text=text)
            self._bar.start()
            self._terminal.show_cursor(True)  # rich hides it; nobody would undo it after a SIGKILL
        self._bar.update(self._bar.task_ids[0], completed=step, total=total, text=text)
        self._bar.refresh()


class NotebookDisplay(BarDisplay):
    """The same as one output of a notebook's cell, drawn anew as the run goes on."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self._plain, self._html, self._shown = list[str](), list[str](), ""
        self._handle: Any = None

    @property
    @override
    def _width(self) -> int:
        return _NOTEBOOK

    @override
    def _print(self, line: Text) -> None:
        self._plain.append(line.plain)
        self._html.append(_html(line))
        self._update()

    @override
    def _show(self, step: int, total: int | None, text: str) -> None:
        at = f' value="{step}" max="{total}"' if total else ""
        self._shown = f"<progress{at}></progress> {escape(text)}"
        self._update()

    @override
    def close(self) -> None:
        """The bar stays, as far as it came."""

    def _update(self) -> None:
        # No dependency: a kernel has imported it.
        display = importlib.import_module("IPython.display").display
        plain, html = "\n".join(self._plain), "\n".join(self._html)
        made = {"text/plain": plain, "text/html": f"<pre>{html}</pre>{self._shown}"}
        if self._handle is None:
            self._handle = display(made, raw=True, display_id=True)
        else:
            self._handle.update(made, raw=True)


def _html(line: Text) -> str:
    """A line with its spans bold: those of a table are the best values."""
    places = [0, *chain.from_iterable((span.start, span.end) for span in line.spans), len(line)]
    parts = [escape(line.plain[start:end]) for start, end in pairwise(places)]
    return "".join(f"<b>{part}</b>" if n % 2 else part for n, part in enumerate(parts))


def _joined(parts: Sequence[str], width: int) -> str:
    text, *rest = parts
    for part in rest:
        if len(text) + len(part) + 3 > width:
            break
        text = f"{text} · {part}"
    return text


class ValuesTable:
    """A table that grows by a row per evaluation; its header is repeated where the columns change.

    Where the header is wider than the terminal its words stand one above the other. Values that do
    not fit even then are left out, the last first, but for the one by which the best weights are
    ``selected``, and named below the header. The best so far are bold.
    """

    def __init__(self, directions: Mapping[str, Direction], *, selected: str = "") -> None:
        self._directions, self._selected = directions, selected
        self._best: dict[tuple[str, str], float] = {}
        self._columns: tuple[object, ...] = ()
        self._titles: dict[str, list[str]] = {}

    def add(
        self, split: str, progress: Progress, values: Mapping[str, float], *, width: int = 0
    ) -> list[Text]:
        """The lines to print for one evaluation on a terminal of a width; 0 is any."""
        lines = []
        if self._columns != (*values, width):
            self._columns = (*values, width)
            self._titles = _titles(list(values), self._selected, (width or 1 << 20) - len(_PLACE))
            lines += [Text(line, style="dim") for line in self._header(values)]
        epoch = f"{progress['epoch']:.1f}" if "epoch" in progress else ""
        row = Text(f"{split:<5} {int(progress.get('step', 0)):>7,} {epoch:>6}")
        for name, words in self._titles.items():
            text = format_value(name, values[name]).rjust(_width(words))
            style = "bold" if self._is_best(split, name, values[name]) else ""
            row.append(" ").append(text, style=style)
        return [*lines, row]

    def _header(self, values: Mapping[str, float]) -> list[str]:
        height = max(map(len, self._titles.values()), default=1)
        lines = [" " * len(_PLACE)] * (height - 1) + [_PLACE]
        for words in self._titles.values():
            above = [""] * (height - len(words)) + words
            lines = [f"{a} {b.rjust(_width(words))}" for a, b in zip(lines, above, strict=True)]
        left_out = [name for name in values if name not in self._titles]
        return [*lines, *([f"not shown: {', '.join(left_out)}"] if left_out else [])]

    def _is_best(self, split: str, name: str, value: float) -> bool:
        way, before = self._directions.get(name), self._best.get((split, name))
        if way is None or value != value:
            return False
        if before is not None and (value <= before if way == "higher" else value >= before):
            return False
        self._best[split, name] = value
        return before is not None  # the first is no progress yet


_PLACE = f"{'split':<5} {'step':>7} {'epoch':>6}"


def _titles(names: Sequence[str], selected: str, width: int) -> dict[str, list[str]]:
    for titles in ({name: [name] for name in names}, {name: name.split("_") for name in names}):
        if sum(1 + _width(words) for words in titles.values()) <= width:
            return titles
    for name in reversed(names):
        if name != selected and len(titles) > 1:
            del titles[name]
        if sum(1 + _width(words) for words in titles.values()) <= width:
            break
    return titles


def _width(words: Sequence[str]) -> int:
    return max(7, *map(len, words))


@registries.reporters.register("console")
class Console(Component, Reporter):
    """Shows the run on standard error, which is where the log goes too.

    On a terminal, and in a notebook: a bar with steps, time left, steps per second and the loss;
    each evaluation is a row of a table above it, the best values so far in bold. Elsewhere: a line
    per report. Values with a slash in their names (of each label, say) are in neither; a run ends
    with a table of its labels, on the test data or as the best weights did on the valid data; where
    those are of before an interruption, as ``metrics.jsonl`` has them. Colours follow ``NO_COLOR``.
    It writes to ``stream`` instead where one is given.
    """

    class Config(BaseConfig):
        mode: Literal["auto", "bar", "lines"] = setting("auto", in_key=False)
        """``bar`` or ``lines``; ``auto`` shows a bar on a terminal and in a notebook."""

    def __init__(self, config: Config, *, stream: TextIO | None = None) -> None:
        self.config = config
        self._stream = stream
        self._display: Display | None = None
        self._labels: dict[tuple[str, int], str] = {}
        self._epoch: float | None = None

    @override
    def start(self, info: RunInfo) -> None:
        self._shown().start(info)
        if info.step and info.folder:
            for line in read_lines(info.folder / "metrics.jsonl"):
                if isinstance(line.get("step"), int):
                    self._keep(str(line.get("split")), line, _values(line))

    @override
    def tick(self, progress: Progress) -> None:
        self._shown().tick(progress)

    @override
    def report(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        self._epoch = progress.get("epoch", self._epoch)
        self._shown().report(split, progress, {n: v for n, v in values.items() if "/" not in n})
        self._keep(split, progress, values)

    @override
    def end(self, summary: Mapping[str, Any]) -> None:
        self.close()
        self._shown().say(self._best_labels(summary))
        # Whole epochs are said as the lines above have them: 0.2, not 0.
        epoch = {} if self._epoch is None else {"epochs": ("epoch", f"{self._epoch:.1f}")}
        result: dict[str, Any] = dict(epoch.get(n, (n, value)) for n, value in summary.items())
        flat = {n: v for n, v in result.items() if isinstance(v, str | int | float)}  # no tables
        self._shown().say(" · ".join(["done", *named_values(flat)]))

    @override
    def close(self) -> None:
        if self._display:
            self._display.close()

    def _keep(self, split: str, progress: Progress, values: Mapping[str, float]) -> None:
        if split != "train" and (table := labels_table(values)):
            self._labels[split, int(progress.get("step", 0))] = table

    def _best_labels(self, summary: Mapping[str, Any]) -> str:
        best = summary.get("best")
        step = best.get("step") if isinstance(best, Mapping) else None
        of_best = [place for place in self._labels if place[1] == step]
        of_test = [place for place in self._labels if place[0] == "test"]
        places = of_test or (of_best if best else list(self._labels))
        if not places:
            return ""
        split, at = places[-1]
        weights = summary.get("weights", best) if split == "test" else None
        of = weights["step"] if weights else at  # the test data come after the last step
        used = f"{'the weights of ' if weights else ''}step {of:,}"
        what = f"labels of {split}_data, {used}{' (the best)' if of == step else ''}:"
        return f"{what}\n{self._labels[split, at]}"

    def _shown(self) -> Display:
        if self._display is None:
            stream = self._stream or sys.stderr  # looked up late: tests and notebooks replace it
            mode = self.config.mode
            terminal = stream.isatty() and os.environ.get("TERM") != "dumb"
            bar = mode == "bar" or (mode == "auto" and terminal)
            # A kernel replaces sys.stderr; a stream of the caller's own gets lines.
            notebook = mode == "auto" and type(stream).__module__ == "ipykernel.iostream"
            kind = NotebookDisplay if notebook else BarDisplay if bar else LinesDisplay
            self._display = kind(stream)
        return self._display


def _values(line: Mapping[str, Any]) -> dict[str, float]:
    return {
        name: float(value)
        for name, value in line.items()
        if is_of_label(name) and (isinstance(value, int | float) or value == "NaN")
    }
