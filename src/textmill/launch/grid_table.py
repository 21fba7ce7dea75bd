"""The results of a grid as a table and a page: a line for each combination, best first."""

import csv
import io
import math
import statistics
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from textmill.errors import TextmillError
from textmill.launch.cells import SEEDS, Axis, Cell
from textmill.metrics.tables import format_value, is_of_label, text_table
from textmill.run_folder.folder import RunFolder
from textmill.run_folder.record import mapping, numbers, selected_by
from textmill.runs.report.markup import cards, details, page, section, table
from textmill.runs.study import JOURNAL

MOST_LINES = 500
"""Rows of a table: the best ones."""


@dataclass(frozen=True)
class Outcome:
    """A cell and what its folder says of it."""

    cell: Cell
    metric: str = ""
    """The value that it is selected by; empty if nothing is selected."""
    sign: float = 1.0
    """1 if higher is better, else -1."""
    best: float = math.nan
    """The best value."""
    step: int | None = None
    """The step of the best value."""
    test: Mapping[str, float] = field(default_factory=dict)
    """The values on ``test_data``, without those of single labels."""

    @classmethod
    def of(cls, cell: Cell) -> "Outcome":
        if cell.state != "finished":
            return cls(cell)
        info = {}
        with suppress(TextmillError, OSError):
            info = RunFolder(cell.folder).info
        metric, sign = selected_by(info)
        result = mapping(info, "result")
        best = numbers(mapping(result, "best"), ())
        step = int(best["step"]) if "step" in best else None
        test = numbers(mapping(result, "test"), ())
        test = {name: value for name, value in test.items() if not is_of_label(name)}
        known = metric if metric in best else ""
        return cls(cell, known, sign, best.get(metric, math.nan), step, test)

    @property
    def rank(self) -> float:
        """Lower is better; NaN comes last."""
        return math.inf if math.isnan(self.best) else -self.sign * self.best


@dataclass(frozen=True)
class Combination:
    """The cells that differ only in their seed."""

    values: tuple[str, ...]
    """The values of all axes but the seed."""
    outcomes: tuple[Outcome, ...]

    @property
    def finished(self) -> list[Outcome]:
        done = [one for one in self.outcomes if one.cell.state == "finished"]
        return sorted(done, key=lambda one: one.rank)

    def spread(self, name: str | None = None) -> tuple[float, float]:
        """Mean and sample deviation over the seeds, of the best or of a value of the test."""
        values = [one.best if name is None else one.test.get(name) for one in self.finished]
        known = [value for value in values if value is not None and math.isfinite(value)]
        if not known:
            return math.nan, math.nan
        return statistics.fmean(known), statistics.stdev(known) if len(known) > 1 else math.nan

    @property
    def rank(self) -> float:
        mean, _ = self.spread()
        return math.inf if math.isnan(mean) else -self.finished[0].sign * mean

    @property
    def state(self) -> str:
        states = [one.cell.state for one in self.outcomes]
        return next(s for s in ("failed", "stopped", "open", *states) if s in states)


class GridTable:
    """The cells of a grid as lines, the best first."""

    def __init__(self, axes: Sequence[Axis], cells: Sequence[Cell]) -> None:
        self.axes = [axis for axis in axes if axis.name != SEEDS]
        self.seeded = len(self.axes) < len(axes)
        self.outcomes = [Outcome.of(cell) for cell in cells]
        grouped: dict[tuple[str, ...], list[Outcome]] = {}
        for one in self.outcomes:
            values = one.cell.values[: len(self.axes)]  # the seed is the last axis
            grouped.setdefault(tuple(values), []).append(one)
        lines = [Combination(values, tuple(each)) for values, each in grouped.items()]
        self.lines = sorted(lines, key=lambda line: line.rank)
        metrics = {one.metric for one in self.outcomes if one.cell.state == "finished"}
        self.metric = metrics.pop() if len(metrics) == 1 else ""
        """The value that all runs are selected by; empty if there are several."""
        self.tests = list(dict.fromkeys(name for one in self.outcomes for name in one.test))

    @property
    def best(self) -> Outcome | None:
        """The best run of the best combination; None if they cannot be compared."""
        if not (self.metric and self.lines) or math.isinf(self.lines[0].rank):
            return None
        return self.lines[0].finished[0]

    def header(self, tests: Sequence[str]) -> list[str]:
        values = [self.metric or "best", *(f"test {test}" for test in tests)]
        if self.seeded:
            values = [each for value in values for each in (value, f"{value} deviation")]
        ran = "seeds" if self.seeded else "step"
        return [*(axis.short for axis in self.axes), "state", *values, ran, "run"]

    def rows(self, tests: Sequence[str]) -> list[list[object]]:
        found = []
        for line in self.lines:
            numbers_: list[object] = []
            for name in (None, *tests):
                mean, deviation = line.spread(name)
                numbers_ += [mean, deviation] if self.seeded else [mean]
            first = next(iter([*line.finished, *line.outcomes]))
            ran: object = first.step
            if self.seeded:
                ran = f"{len(line.finished)} of {len(line.outcomes)}"
            found.append([*line.values, line.state, *numbers_, ran, str(first.cell.folder)])
        return found

    def formatted(self, tests: Sequence[str]) -> list[list[str]]:
        """The rows as a person reads them; a dash for a value that is not known."""
        first = len(self.axes) + 1
        names = [name for name in (self.metric, *tests) for _ in range(1 + self.seeded)]
        return [
            [
                *map(str, row[:first]),
                *map(_shown, names, row[first:-2]),
                *map(_shown, "  ", row[-2:]),
            ]
            for row in self.rows(tests)
        ]

    def text(self) -> str:
        tests = [name for name in self.tests if name == self.metric]
        return text_table(self.header(tests), self.formatted(tests))

    def tsv(self) -> str:
        return _tsv(self.header(self.tests), self.rows(self.tests))

    def cells_tsv(self) -> str:
        names = [axis.short for axis in self.axes] + ["seed"] * self.seeded
        tests = [f"test {name}" for name in self.tests]
        header = [*names, "state", self.metric or "best", "step", *tests, "run", "reason"]
        rows = [
            [*one.cell.values, one.cell.state, one.best, one.step]
            + [one.test.get(name) for name in self.tests]
            + [str(one.cell.folder), one.cell.reason]
            for one in self.outcomes
        ]
        return _tsv(header, rows)

    @property
    def failed(self) -> list[Cell]:
        ended = ("finished", "pruned")
        return [one.cell for one in self.outcomes if one.cell.state not in ended]

    def summary(self, folder: Path) -> list[str]:
        """What is printed of a grid in a folder when its cells have ended."""
        lines = [self.text(), *self.best_lines()]
        if self.failed:
            count = f"{len(self.failed)} of {len(self.outcomes)} cells are not finished"
            but = " but those that failed" if (folder / JOURNAL).exists() else ""
            lines.append(f"{count}; the same command goes on with them{but}")
        return [*lines, f"report: {folder / 'report.html'}"]

    def best_lines(self) -> list[str]:
        if self.best is None:
            finished = any(one.cell.state == "finished" for one in self.outcomes)
            why = "the runs are not selected by one value that all have"
            return [f"best: none is named, as {why if finished else 'no cell is finished'}"]
        line = self.lines[0]
        mean, deviation = (format_value(self.metric, value) for value in line.spread())
        chosen = " ".join(self.best.cell.chosen[: len(self.axes)])
        lines = []
        if self.seeded and len(line.finished) > 1:
            value = f"{self.metric} {mean} ± {deviation} over {len(line.finished)} seeds"
            lines = [f"best settings: {chosen or 'those of the recipe'}: {value}"]
        value = format_value(self.metric, self.best.best)
        at = "" if self.best.step is None else f" at step {self.best.step:,}"
        best = f"best: {self.best.cell.label}: {self.metric} {value}{at}"
        return [*lines, best, f"run: {self.best.cell.folder}"]


def _tsv(header: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    file = io.StringIO()
    lines = csv.writer(file, delimiter="\t", lineterminator="\n")
    lines.writerow(header)
    for row in rows:
        empty = [cell is None or (isinstance(cell, float) and math.isnan(cell)) for cell in row]
        lines.writerow(["" if no else cell for no, cell in zip(empty, row, strict=True)])
    return file.getvalue()


def grid_html(grid: GridTable, title: str, command: str) -> str:
    """The page, whole: HTML that needs no other file, no network and no script."""
    states = [one.cell.state for one in grid.outcomes]
    facts: dict[str, object] = {"cells": len(states), "finished": states.count("finished")}
    facts |= {state: states.count(state) for state in ("failed", "stopped") if state in states}
    if grid.best is not None:
        mean, deviation = grid.lines[0].spread()
        facts[f"best {grid.metric}"] = format_value(grid.metric, mean)
        if not math.isnan(deviation):
            facts["deviation over seeds"] = format_value(grid.metric, deviation)
        facts |= {axis.short: v for axis, v in zip(grid.axes, grid.lines[0].values, strict=True)}
    bad = [one for one in grid.outcomes if one.cell.state in ("failed", "stopped")]
    reasons = [[one.cell.label, one.cell.state, one.cell.reason] for one in bad[:MOST_LINES]]
    state = "finished" if set(states) == {"finished"} else "failed" if "failed" in states else ""
    runs = [
        [o.cell.label, o.cell.state, _shown(grid.metric, o.best), o.cell.folder]
        for o in grid.outcomes[:MOST_LINES]
    ]
    header, rows = grid.header(grid.tests), grid.formatted(grid.tests)[:MOST_LINES]
    numeric = range(len(grid.axes) + 1, len(header) - 2)
    results = table(header, rows, numeric=numeric, marked=[0] if grid.best is not None else [])
    every = table(["cell", "state", grid.metric or "best", "run"], runs, numeric=[2])
    return page(
        title,
        state or "not finished",
        section(
            "Result", cards(facts), *([f"Best run: {grid.best.cell.folder}"] if grid.best else [])
        ),
        section("Table", results),
        section("Not finished", *([table(["cell", "state", "why"], reasons)] if reasons else [])),
        section("Cells", *([details(f"All {len(states):,} cells", every)] if grid.seeded else [])),
        note=command,
    )


def _shown(name: str, value: object) -> str:
    """A cell as a person reads it; a dash for a value that is not known."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    return format_value(name, value) if isinstance(value, float) else str(value)
