"""Two ways to show a run: plain lines, and a progress bar with evaluations as a table above it."""

import time as clock
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import TextIO, final

from rich.console import Console as Terminal
from rich.progress import BarColumn, TextColumn
from rich.progress import Progress as Bar
from rich.text import Text
from typing_extensions import override

from textmill.metrics.metric import Direction
from textmill.metrics.reporters.reporter import Progress, Reporter, RunInfo
from textmill.metrics.tables import format_eta, format_rate, format_value
from textmill.runtime.logging import printable

_SECONDS_BETWEEN_DRAWINGS = 0.1
_BAR = 16
"""Characters of the bar."""


class Display(Reporter):
    """One way to show a run on a stream."""

    @abstractmethod
    def say(self, text: str) -> None:
        """Shows a line of text."""


@final
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
    """The first line: what runs, where, and what there is to know of it.

    Example:
        >>> opening(RunInfo(recipe="tatoeba.py", step=1000, facts={"rows": 1000}))
        'tatoeba.py · rows 1,000 · goes on after step 1,000'
    """
    parts = [info.recipe, str(info.folder) if info.folder else ""]
    parts += named_values(info.facts)
    parts.append(f"goes on after step {info.step:,}" if info.step else "")
    return " · ".join(part for part in parts if part)


def plain_line(split: str, progress: Progress, values: Mapping[str, float]) -> str:
    """A report as one line.

    Example:
        >>> plain_line("train", {"step": 20, "epoch": 1.0}, {"loss": 2.5})
        'step 20 · epoch 1.0 · loss 2.500'
    """
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
    """All rates of a ``time`` mapping, as people read them.

    Example:
        >>> rates({"elapsed": 3.0, "steps_per_second": 7.42})
        ['7.4 steps/s']
    """
    return [format_rate(k, v) for k, v in time.items() if k.endswith("_per_second")]


def summary_line(summary: Mapping[str, object]) -> str:
    """The last line: the result of a run; parts that are tables of their own are left out.

    Example:
        >>> summary_line({"step": 1200, "bleu": 40.912, "best": {"step": 1000}})
        'done · step 1,200 · bleu 40.91'
    """
    flat = {name: v for name, v in summary.items() if isinstance(v, str | int | float)}
    return " · ".join(["done", *named_values(flat)])


def named_values(values: Mapping[str, object]) -> list[str]:
    """Values as people read them, each behind its name."""
    return [f"{name} {format_value(name, value)}" for name, value in values.items()]


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
        for line in self._table.add(split, progress, values, width=self._terminal.width):
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
        left = [] if eta is None else [format_eta(eta)]
        step, total = int(progress.get("step", 0)), progress.get("total", self._total)
        steps = f"{step:,}/{total:,} steps" if total else f"{step:,} steps"
        text = _joined([steps, *left, *self._notes], self._terminal.width - _BAR - 1)
        if self._bar is None:
            column = TextColumn("{task.fields[text]}", markup=False)
            shown = (BarColumn(bar_width=_BAR), column)
            self._bar = Bar(*shown, console=self._terminal, auto_refresh=False)
            self._bar.add_task("train", completed=step, total=total, text=text)
            self._bar.start()
            self._terminal.show_cursor(True)  # rich hides it; nobody would undo it after a SIGKILL
        self._bar.update(self._bar.task_ids[0], completed=step, total=total, text=text)
        self._bar.refresh()


def _joined(parts: Sequence[str], width: int) -> str:
    """The first parts in a line, as many as fit; at least one."""
    text, *rest = parts
    for part in rest:
        if len(text) + len(part) + 3 > width:
            break
        text = f"{text} · {part}"
    return text


@final
class ValuesTable:
    """A table that grows by a row per evaluation; its header is repeated where the columns change.

    Where the header is wider than the terminal its words stand one above the other. Values that do
    not fit even then are left out, the last first, and named below the header.

    Args:
        directions: For each value, which values are better; the best so far are bold.
        selected: The value by which the best weights are chosen: it is not left out.

    Example:
        >>> table = ValuesTable({"bleu": "higher"})
        >>> for line in table.add(
        ...     "valid", {"step": 1000, "epoch": 2.0}, {"loss": 2.5, "bleu": 28.3}
        ... ):
        ...     print(line.plain)
        split    step  epoch    loss    bleu
        valid   1,000    2.0   2.500   28.30
        >>> values = {"loss": 2.5, "macro_precision": 0.9, "recall": 0.8}
        >>> for line in table.add("valid", {"step": 2000, "epoch": 4.0}, values, width=41):
        ...     print(line.plain)
                                         macro
        split    step  epoch    loss precision
        not shown: recall
        valid   2,000    4.0   2.500    90.0 %
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
    """The columns that fit into a width: the lines of the title of each value, by its name."""
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
