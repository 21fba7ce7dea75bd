"""What was seen in a file of rows, as lines to print and as a page."""

from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path

from textmill.data.look.facts import Facts
from textmill.data.look.guess import Guess
from textmill.data.look.sample import Sample

WIDTH = 110
MOST_LABELS = 200
"""Labels on a page; printed are as many as fit on a line."""
_PAGE = """<!doctype html><html lang="en"><meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: data</title>
<style>
:root {{ color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif }}
body {{ max-width: 60rem; margin: 2rem auto; padding: 0 1rem }}
table {{ border-collapse: collapse; width: 100%; margin-bottom: 2rem }}
th, td {{ text-align: left; vertical-align: top; padding: .3rem .6rem }}
th ~ td:last-child, td:first-child {{ overflow-wrap: anywhere }}
tr + tr {{ border-top: 1px solid color-mix(in srgb, currentColor 20%, transparent) }}
meter {{ width: 12rem; max-width: 30vw }}
</style>
<h1>{title}</h1>
<p>{how}
{tables}"""
Cells = Sequence[tuple[str, str, str]]


def read_columns(sample: Sample, guess: Guess) -> Cells:
    """What is read: each column of the task, its name in the file, and what was seen."""
    return [
        (role, sample.names[at], guess.reasons.get(role, "")) for role, at in guess.columns.items()
    ]


def report_lines(path: Path, sample: Sample, guess: Guess, facts: Facts) -> list[str]:
    """The report as a short table."""
    counts = ", ".join(f"{name} {count:,}" for name, count in facts.labels.items())
    labels = [("labels", f"{len(facts.labels):,}", counts)] if counts else []
    lines = [f"{path}: {_how(sample)}", *_aligned(read_columns(sample, guess))]
    lines += ["", *_aligned([*facts.lines, *labels])]
    return [line if len(line) <= WIDTH else f"{line[: WIDTH - 3]}..." for line in lines]


def _how(sample: Sample) -> str:
    settings = " · ".join(f"{name} {value}" for name, value in sample.settings.items())
    return settings or "read as its name says"


def _aligned(rows: Cells) -> list[str]:
    first, second = (max(len(row[n]) for row in rows) for n in (0, 1))
    return [f"  {a:<{first}}  {b:<{second}}  {c}".rstrip() for a, b, c in rows]


def report_page(path: Path, sample: Sample, guess: Guess, facts: Facts) -> str:
    """The report as a page of HTML that needs nothing else."""
    most = max(facts.labels.values(), default=1)
    labels = [
        f'<tr><th>{escape(name)}<td>{count:,}<td><meter max="{most}" value="{count}" '
        f'aria-label="{escape(name)}"></meter>'
        for name, count in [*facts.labels.items()][:MOST_LABELS]
    ]
    names = [*facts.shown[0]] if facts.shown else []
    tables = {
        "What is read": map(_row, read_columns(sample, guess)),
        "What is in it": map(_row, facts.lines),
        f"Labels ({len(facts.labels):,})": labels,
        "First rows": [_row(names), *(_row(row.values(), head="td") for row in facts.shown)],
    }
    made = (f"<h2>{title}</h2>\n<table>{''.join(rows)}</table>\n" for title, rows in tables.items())
    return _PAGE.format(title=escape(path.name), how=escape(_how(sample)), tables="".join(made))


def _row(cells: Iterable[str], *, head: str = "th") -> str:
    first, *others = map(escape, cells)
    return f"<tr><{head}>{first}{''.join(f'<td>{cell}' for cell in others)}\n"
