"""Two runs on one page: values, curves and settings, and the rows that one of them gets right."""

from pathlib import Path

from textmill.run_folder.record import Record
from textmill.runs.report.answers import aligned
from textmill.runs.report.markup import Markup, page, section, tag
from textmill.runs.report.page import (
    answer_markup,
    figures_markup,
    measured_markup,
    tables_markup,
    unfolded,
)
from textmill.runs.report.summarize import difference, summarize
from textmill.runs.report.summary import Answered, RunSummary, joined
from textmill.runtime.files import write_atomic

MOST_CHANGED = 50
"""Rows that are shown of those that only one of the runs gets right."""


def write_comparison(first: Path, second: Path, target: Path) -> Path:
    """Writes a page that shows two runs side by side."""
    records = Record.read(first), Record.read(second)
    a, b = (summarize(record, None, {}) for record in records)
    curves = {figure.name: figure for figure in a.curves}
    drawn = [joined(curves[each.name], each) for each in b.curves if each.name in curves]
    shown = page(
        f"{first.name} and {second.name}",
        "",
        section("Results", tag("div", _side("A", first, a), _side("B", second, b), cls="sides")),
        _changed(a, b),
        section("Curves", figures_markup(drawn)),
        *tables_markup([difference(*records, folded=False)]),
        bare=False,
    )
    write_atomic(target, shown.encode("utf-8", "backslashreplace"))
    return target


def _side(name: str, path: Path, summary: RunSummary) -> Markup:
    title = tag("h3", f"{name}: {path} ({summary.title}, {summary.state})")
    return tag("div", title, measured_markup(summary))


def changed_rows(a: RunSummary, b: RunSummary) -> tuple[list[Answered], list[Answered]] | None:
    """B's answers to rows that only A, and only B, gets right; None if the rows differ."""
    wanted = {answer.row: answer for answer in a.answers}
    same = len(wanted) == len(b.answers) and all(
        each.row in wanted and wanted[each.row].wanted_text == each.wanted_text
        for each in b.answers
    )
    if not same or all(answer.right is None for answer in b.answers):
        return None
    pairs = [(wanted[each.row].right, each) for each in b.answers]
    lost = [each for before, each in pairs if before and not each.right]
    return lost, [each for before, each in pairs if each.right and not before]


def sign_test(one: int, other: int) -> float:
    """The probability of so uneven a count, or more, if both were as likely (McNemar, exact)."""
    count = one + other
    tail = ways = 1  # to choose none of them, one, two ...
    for chosen in range(min(one, other)):
        ways = ways * (count - chosen) // (chosen + 1)
        tail += ways
    return min(1.0, float(2 * tail / 2**count))


def _changed(a: RunSummary, b: RunSummary) -> Markup:
    changed = changed_rows(a, b)
    if changed is None:
        return Markup("")
    lost, won = changed
    chance = sign_test(len(lost), len(won))
    told = (
        f"Rows that B gets right and A does not: {len(won):,}; the other way round: {len(lost):,}. "
        "If both were equally good, so large a difference would have a probability of "
        f"{chance:.2g} (sign test)."
    )
    kinds: dict[str, int] = {}
    parts = [tag("p", told, cls="hint")]
    for title, answers in (("Only A is right; B answers", lost), ("Only B is right", won)):
        lines = [answer_markup(aligned(answer), kinds) for answer in answers[:MOST_CHANGED]]
        if lines:
            parts += [tag("h3", f"{title}: {len(answers):,}"), *unfolded(lines)]
    return section("Rows that changed", *parts, cls="rows")
