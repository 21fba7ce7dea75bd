"""``report.html`` of a grid: its table, and every combination as a line across its settings."""

import math
from collections.abc import Sequence

from textmill.launch.grid_table import Combination, GridTable
from textmill.metrics.reporters.html_page import Markup, cards, details, page, section, table, text
from textmill.metrics.tables import format_value

__all__ = ["grid_html", "parallel_coordinates"]

WIDTH, HEIGHT, TOP, BOTTOM, SIDE = 1040, 320, 34, 16, 84
MOST_TICKS = 8
"""Values of a setting that each have a place of their own; more numbers are drawn to scale."""
DECADES = 30.0
"""Largest over smallest number from which on a scale is of decades."""
HALO = "paint-order:stroke;stroke:var(--card);stroke-width:4"
"""Of the words beside an upright line: they are read over the lines that cross them."""
MOST_LINES = 500
"""Lines of a drawing, and rows of a table: the best ones."""


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
    every = table(["cell", "state", grid.metric or "best", "run"], runs, numeric=[2])
    return page(
        title,
        state or "not finished",
        section(
            "Result", cards(facts), *([f"Best run: {grid.best.cell.folder}"] if grid.best else [])
        ),
        section("Settings and results", parallel_coordinates(grid)),
        section("Table", _table(grid)),
        section("Not finished", *([table(["cell", "state", "why"], reasons)] if reasons else [])),
        section("Cells", *([details(f"All {len(states):,} cells", every)] if grid.seeded else [])),
        note=command,
    )


def _table(grid: GridTable) -> Markup:
    header = grid.header(grid.tests)
    first = len(grid.axes) + 1
    last = len(header) - 2
    names = [name for name in (grid.metric, *grid.tests) for _ in range(1 + grid.seeded)]
    rows = []
    for row in grid.rows(grid.tests)[:MOST_LINES]:
        values = [_shown(name, row[first + i]) for i, name in enumerate(names)]
        rows.append([*row[:first], *values, "-" if row[last] is None else row[last], row[-1]])
    marked = [0] if grid.best is not None else []
    return table(header, rows, numeric=range(first, last), marked=marked)


def _shown(name: str, value: object) -> str:
    known = isinstance(value, float) and not math.isnan(value)
    return format_value(name, value) if known else "-"


class _Scale:
    """From the values of one upright line to their heights; its ticks."""

    def __init__(self, values: Sequence[str], *, by_number: bool = False) -> None:
        self.values = list(dict.fromkeys(values))
        found = [_number(value) for value in self.values]
        self.numbers = [number for number in found if number is not None]
        numeric = len(self.numbers) == len(found)
        if numeric:
            self.values.sort(key=float)
        self.to_scale = numeric and (by_number or len(self.values) > MOST_TICKS)
        low, high = (min(self.numbers), max(self.numbers)) if numeric else (0.0, 0.0)
        self.low, self.high = low, high
        self.log = self.to_scale and not by_number and low > 0 and high / low > DECADES

    def height(self, value: str) -> float:
        """Where a value stands, from 0 below to 1 above."""
        if not self.to_scale:
            return (self.values.index(value) + 0.5) / len(self.values)
        low, high, here = self.low, self.high, float(value)
        if self.log:
            low, high, here = math.log(low), math.log(high), math.log(here)
        return 0.5 if high == low else (here - low) / (high - low)

    def ticks(self) -> list[str]:
        """The values that are written beside the line."""
        if not self.to_scale:
            return self.values if len(self.values) <= 40 else self.values[:: len(self.values) // 20]
        return list(
            dict.fromkeys([self.values[0], self.values[len(self.values) // 2], self.values[-1]])
        )


def _number(value: str) -> float | None:
    try:
        number = float(value)
    except ValueError:
        return None
    return number if math.isfinite(number) else None


def parallel_coordinates(grid: GridTable) -> Markup:
    """An upright line for each setting and for the metric, and a line across for each combination.

    The better a combination, the darker its line; the best is drawn thick, over all others.
    Nothing where no combination has a value.
    """
    known = [line for line in grid.lines if not math.isinf(line.rank)][:MOST_LINES]
    if not known or not grid.metric or not grid.axes:
        return Markup("")
    columns = [(axis.short, [line.values[i] for line in known]) for i, axis in enumerate(grid.axes)]
    results = [repr(line.spread()[0]) for line in known]
    scales = [_Scale(values) for _, values in columns] + [_Scale(results, by_number=True)]
    names = [*(name for name, _ in columns), grid.metric]
    step = (WIDTH - 2 * SIDE) / (len(names) - 1)
    places = [SIDE + number * step for number in range(len(names))]

    def y(scale: _Scale, value: str) -> float:
        return TOP + (1 - scale.height(value)) * (HEIGHT - TOP - BOTTOM)

    drawn = ticks = ""
    for number, (name, scale, x) in enumerate(zip(names, scales, places, strict=True)):
        last = number == len(names) - 1
        drawn += f"<line class=grid x1={x:.1f} x2={x:.1f} y1={TOP} y2={HEIGHT - BOTTOM} />"
        drawn += f"<text x={x:.1f} y=16 text-anchor=middle>{text(name, most=24)}</text>"
        anchor, shift = ("start", 8) if last else ("end", -8)
        for value in scale.ticks():
            said = format_value(name, float(value)) if last else value
            here = f"x={x + shift:.1f} y={y(scale, value) + 4:.1f} text-anchor={anchor}"
            ticks += f'<text {here} style="{HALO}">{text(said, most=12)}</text>'
    for rank in reversed(range(len(known))):
        values = [*known[rank].values, results[rank]]
        points = [(x, y(s, v)) for x, s, v in zip(places, scales, values, strict=True)]
        path = "M" + "L".join(f"{x:.1f} {y_:.1f}" for x, y_ in points)
        shade = 0.9 - 0.75 * rank / max(1, len(known) - 1)
        look = "stroke-width:4" if rank == 0 else f"opacity:{shade:.2f}"
        drawn += (
            f'<g class="c{2 if rank == 0 else 0}"><path d="{path}" style="{look}">'
            f"<title>{_title(grid, known[rank])}</title></path></g>"
        )
    return Markup(
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role=img '
        f'aria-label="{text(grid.metric)} by settings">{drawn}{ticks}</svg>'
    )


def _title(grid: GridTable, line: Combination) -> str:
    said = " ".join(f"{a.short}={v}" for a, v in zip(grid.axes, line.values, strict=True))
    return text(f"{said}: {grid.metric} {format_value(grid.metric, line.spread()[0])}", most=300)
