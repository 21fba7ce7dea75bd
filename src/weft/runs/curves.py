"""The values of a run as drawings over its steps, in a report and in a notebook."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from weft.metrics.reporters.html_curves import Curve, figure
from weft.metrics.reporters.html_page import Markup
from weft.run_folder.diff import mapping
from weft.run_folder.record import numbers

__all__ = ["curves"]

MOST_CURVES = 24
"""Drawings; a run has some ten values."""


def curves(lines: Iterable[Mapping[str, Any]], names: Sequence[str] = ()) -> Markup:
    """A drawing per value of ``metrics.jsonl``; the splits that have it are lines of the same one.

    Without names of values all are drawn, and the speed.

    Example:
        >>> lines = [{"split": "valid", "step": n, "loss": 1 / n, "f1": 0.5} for n in (1, 2)]
        >>> curves(lines).html.count("<svg"), curves(lines, ["loss"]).html.count("<svg")
        (2, 1)
    """
    drawn: dict[str, dict[str, list[tuple[float, float]]]] = {}
    speed: dict[str, list[tuple[float, float]]] = {}
    for line in lines:
        step, split = numbers(line, ()).get("step"), line.get("split")
        if step is None or not isinstance(split, str):
            continue
        for name, value in numbers(line).items():
            if split == "test":  # one point, and of the best weights: it is on no curve
                continue
            if name in names or ("/" not in name and not names):
                drawn.setdefault(name, {}).setdefault(split, []).append((step, value))
        for name, value in numbers(mapping(line, "time"), ()).items():
            if name.endswith("_per_second") and split == "train" and not names:
                speed.setdefault(name, []).append((step, value))
    steps = [step for splits in drawn.values() for p in splits.values() for step, _ in p]
    last = max(steps, default=1)
    figures = [
        figure(
            name,
            [Curve(split, p, dots=split != "train") for split, p in splits.items()],
            last_step=last,
        )
        # The loss, then what evaluations measure, then what only training has.
        for name, splits in sorted(
            drawn.items(), key=lambda of: (of[0] != "loss", of[1].keys() <= {"train"})
        )
    ]
    figures += [
        figure(name.replace("_", " "), [Curve("train", points)], last_step=last)
        for name, points in speed.items()
    ]
    shown = "".join(drawing.html for drawing in figures[:MOST_CURVES])
    return Markup(f"<div class=curves>{shown}</div>" if shown else "")
