"""The figures of a report as files, PNG or SVG, drawn by matplotlib from the same summary."""

import re
from collections.abc import Sequence
from functools import partial
from importlib.util import find_spec
from io import BytesIO
from pathlib import Path
from typing import Any

from textmill.errors import MissingExtraError, UserError
from textmill.run_folder.record import Record
from textmill.runs.report.summarize import summarize
from textmill.runs.report.summary import Confusion, Figure
from textmill.runtime.files import write_atomic

LETTERS = 60
"""Of the names below bars: more are written aslant."""
COLOURS = ("#1f5fa8", "#c2620a", "#2a7d46", "#7a4bb0")
NOT_IN_NAMES = re.compile(r"[^\w-]+")
STYLE = {
    "font.size": 9, "axes.spines.top": False, "axes.spines.right": False, "axes.grid": True,
    "grid.color": "#e4e1d8", "axes.axisbelow": True, "text.parse_math": False,
    "svg.hashsalt": "textmill",
}  # fmt: skip


def write_figures(run: Path, output: Path, form: str = "png") -> list[Path]:
    """Writes each figure of a run's report that has values; ``form`` is png or svg."""
    if find_spec("matplotlib") is None:
        raise MissingExtraError("matplotlib", extra="figures", what="Drawing figures")
    import matplotlib as mpl
    from matplotlib.figure import Figure as Canvas

    summary, written = summarize(Record.read(run), None, {}), []
    drawn: dict[str, Any] = {each.name: partial(_drawing, figure=each) for each in summary.drawings}
    if summary.confusion:
        drawn["confusion"] = partial(_matrix, found=summary.confusion)
    if not drawn:
        raise UserError(f"{run} has nothing to draw: no value was measured twice, no row answered.")
    output.mkdir(parents=True, exist_ok=True)
    for name, draw in drawn.items():
        with mpl.rc_context(STYLE):
            canvas = Canvas(figsize=(6.4, 3.8), layout="constrained", dpi=150)
            draw(canvas.subplots())
            content = BytesIO()
            known = {"Date": None} if form == "svg" else None
            canvas.savefig(content, format=form, metadata=known)
        path = output / f"{NOT_IN_NAMES.sub('-', name)}.{form}"
        write_atomic(path, content.getvalue())
        written.append(path)
    return written


def _drawing(axes: Any, figure: Figure) -> None:
    y = "" if figure.y == figure.name else figure.y
    axes.set(title=figure.title, xlabel=figure.x, ylabel=y)
    several = len(figure.series) > 1
    for number, series in enumerate(figure.series):
        colour = COLOURS[number % len(COLOURS)]
        style = {"color": colour, "label": series.name if several else None}
        xs: Sequence[Any] = [point.x for point in series.points]
        ys = [point.y for point in series.points]
        if figure.kind == "bar":
            names, xs = xs, range(len(xs))
            axes.bar(xs, ys, alpha=0.6, **style)
            slanted = sum(len(str(name)) for name in names) > LETTERS
            turned = {"rotation": 45, "ha": "right"} if slanted else {}
            axes.set_xticks(xs, names, **turned)
        elif figure.kind == "scatter":
            axes.scatter(xs, ys, alpha=0.4, s=14, **style)
        else:
            axes.plot(xs, ys, marker="o" if len(xs) <= 40 else "", markersize=3, **style)
        for x, point in zip(xs, series.points, strict=True):
            if point.low is not None:
                axes.vlines(x, point.low, point.high, color="#333333", linewidth=1)
    if figure.diagonal:
        axes.axline((0, 0), slope=1, color="#888888", linestyle=":")
    if figure.mark is not None:
        axes.axvline(figure.mark, color="#333333", linestyle="--", linewidth=1)
    if figure.decades:
        axes.set_yscale("log")
        axes.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
    if figure.zero:
        axes.set_ylim(bottom=min(0.0, *(p.y for s in figure.series for p in s.points)))
    if figure.share:
        for axis in (axes.yaxis, *([axes.xaxis] if figure.diagonal else [])):
            axis.set_major_formatter(lambda value, _: f"{100 * value:.3g} %")
        axes.set_ylim(top=min(1.02, axes.get_ylim()[1]))
    if several:
        axes.legend(frameon=False)


def _matrix(axes: Any, found: Confusion) -> None:
    shares = [[count / (max(row) or 1) for count in row] for row in found.counts]
    axes.imshow(shares, cmap="Blues", vmin=0, vmax=1.6)
    axes.grid(visible=False)
    places = range(len(found.labels))
    axes.set_xticks(places, found.labels, rotation=45, ha="right")
    axes.set_yticks(places, found.labels)
    axes.set(title=f"Wanted and given labels, {found.unit}", xlabel="given", ylabel="wanted")
    for wanted, row in enumerate(found.counts):
        for given, count in enumerate(row):
            if count:
                axes.text(given, wanted, f"{count:,}", ha="center", va="center", fontsize=7)
