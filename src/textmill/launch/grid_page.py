"""``report.html`` of a grid: its best run, its table, and what is not finished."""

import math

from textmill.launch.grid_table import GridTable
from textmill.metrics.reporters.html_page import Markup, cards, details, page, section, table
from textmill.metrics.tables import format_value

MOST_LINES = 500
"""Rows of a table: the best ones."""


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
