"""What was seen in a file of rows, as lines to print and as a page."""

from collections.abc import Sequence
from itertools import islice
from pathlib import Path

from rich.cells import cell_len, set_cell_size

from textmill.data.look.facts import Fact, Facts
from textmill.data.look.guess import Guess
from textmill.data.look.sample import Sample
from textmill.runs.report.markup import bar, page, section, table, tag

WIDTH = 110
MOST_LABELS = 200
"""Labels on a page; printed are as many as fit on a line."""


def read_columns(sample: Sample, guess: Guess) -> list[Fact]:
    """What is read: each column of the task, its name in the file, and what was seen."""
    return [
        (role, sample.names[at], guess.reasons.get(role, "")) for role, at in guess.columns.items()
    ]


def data_lines(path: Path, sample: Sample, guess: Guess, facts: Facts) -> list[str]:
    """The report as a short table."""
    counts = ", ".join(f"{name} {count:,}" for name, count in facts.labels.items())
    labels = [("labels", f"{len(facts.labels):,}", counts)] if counts else []
    lines = [f"{path}: {_how(sample)}", *_aligned(read_columns(sample, guess))]
    lines += ["", *_aligned([*facts.lines, *labels])]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in lines]


def _how(sample: Sample) -> str:
    settings = " · ".join(f"{name} {value}" for name, value in sample.settings.items())
    return settings or "read as its name says"


def _aligned(rows: Sequence[Fact]) -> list[str]:
    """Columns below each other; a letter of Chinese, Japanese or Korean is two wide."""
    first, second = (max(cell_len(row[n]) for row in rows) for n in (0, 1))
    return [
        f"  {set_cell_size(a, first)}  {set_cell_size(b, second)}  {c}".rstrip() for a, b, c in rows
    ]


def data_page(path: Path, sample: Sample, guess: Guess, facts: Facts) -> str:
    """The report as a page of HTML that needs nothing else."""
    most = max(facts.labels.values(), default=1)
    labels = [
        (name, f"{count:,}", bar(count / most))
        for name, count in islice(facts.labels.items(), MOST_LABELS)
    ]
    drawn = tag("div", table((), labels), cls="labels") if labels else ""
    names = [*facts.shown[0]] if facts.shown else []
    return page(
        f"{path.name}: data",
        "",
        section("What is read", table((), read_columns(sample, guess))),
        section("What is in it", table((), facts.lines)),
        section(f"Labels ({len(facts.labels):,})", drawn),
        section("First rows", table(names, [[*row.values()] for row in facts.shown])),
        lead=_how(sample),
    )
