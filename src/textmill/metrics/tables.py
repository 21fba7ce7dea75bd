"""Values, and tables of them, as plain text."""

import math
import re
from collections.abc import Mapping, Sequence

from textmill.metrics.metric import Direction
from textmill.runtime.logging import printable

_SHARES = re.compile(
    r"(^|[_/.])(accuracy|padding|share|precision|recall|f1|exact_match|whole_sentence|roc_auc"
    r"|rouge(1|2|L|Lsum)|invalid_trees|coverage|calibration_error)(/[0-9.]+)?$"
)
_ONE = 1 + 1e-6
"""What a share can be in single precision."""
_COUNTS = ("support", "num_examples")


def is_share(name: str, *values: float) -> bool:
    """Whether values are shares of 1, which people read in percent, by the name's last word.

    What is above 1 or below -1 (a difference may be -1) is no share.
    """
    return _SHARES.search(name) is not None and all(abs(value) <= _ONE for value in values)


def is_count(name: str) -> bool:
    """Whether a value of this name is a number of rows, which is neither good nor bad."""
    return name.endswith(_COUNTS)


def format_value(name: str, value: object) -> str:
    """A value for a line or a table: four digits, thousands with commas, shares in percent.

    Its name says whether it is a share or a count. A share that does not exist, as the precision of
    a label that never was predicted, is a dash; anything but a number is shown as it is.
    """
    if isinstance(value, bool) or not isinstance(value, int | float):
        return str(value)
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value) and (is_share(name) or is_count(name)):
        return "-"
    if not math.isfinite(value):
        return str(value)
    if is_share(name, value):
        return f"{100 * value:.1f} %"
    if is_count(name):
        return f"{value:,.0f}"
    return _four_digits(value)


def _four_digits(value: float) -> str:
    size = abs(value)
    if size >= 1e9:
        return f"{value:.3e}"
    if size >= 999.95:  # what four digits would round to 1000
        return f"{value:,.0f}"
    if size < 0.01:  # learning rates: 0.0012, not 0.001200
        return f"{value:.4g}"
    return f"{value:#.4g}"


def format_rate(name: str, value: float) -> str:
    unit = name.removesuffix("_per_second").replace("_", " ")
    number = f"{value:,.0f}" if abs(value) >= 10 or not math.isfinite(value) else f"{value:.1f}"
    return f"{number} {unit}/s"


def format_duration(seconds: float) -> str:
    """A duration, as exactly as it is of use."""
    if not math.isfinite(seconds):
        return "?"
    whole = max(0, int(seconds))
    minutes, hours = whole // 60, whole // 3600
    if whole < 60:
        return f"{whole}s"
    if whole < 600:
        return f"{minutes}m {whole % 60:02}s"
    if whole < 3600:
        return f"{minutes}m"
    if hours < 24:
        return f"{hours}h {minutes % 60:02}m"
    return f"{hours // 24}d {hours % 24:02}h"


def format_eta(seconds: float) -> str:
    """The time that is left, in whole seconds that have begun: ``0s`` are not left."""
    return f"eta {format_duration(math.ceil(seconds) if math.isfinite(seconds) else seconds)}"


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under a header; a column of numbers is aligned to the right, others to the left."""
    lines = [[printable(cell).replace("\n", r"\n") for cell in line] for line in (header, *rows)]
    columns = list(zip(*lines, strict=True))
    widths = [max(len(cell) for cell in column) for column in columns]
    right = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    return "\n".join(
        "  ".join(
            cell.rjust(width) if to_right else cell.ljust(width)
            for cell, width, to_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in lines
    )


def _is_number(cell: str) -> bool:
    try:
        float(cell.removesuffix(" %").replace(",", ""))
    except ValueError:
        return cell == "-"
    return True


def values_table(
    values: Mapping[str, float],
    *,
    directions: Mapping[str, Direction] | None = None,
    details: Mapping[str, str] | None = None,
) -> str:
    """The values of one evaluation, each with which are better.

    ``details`` are what is needed to repeat a value, such as sacrebleu's signature.
    """
    better = {name: way for name, way in (directions or {}).items() if not is_count(name)}
    optional: dict[str, Mapping[str, str]] = {"better": better, "": details or {}}
    shown = {title: column for title, column in optional.items() if column}
    rows = [
        [name, format_value(name, value), *(column.get(name, "") for column in shown.values())]
        for name, value in values.items()
    ]
    return text_table(["value", "result", *shown], rows)


def is_of_label(name: str) -> bool:
    """Whether a value is one of a single label, or of trees of one depth.

    There are many, which would hide the others. Of several tasks the name of one comes before it.
    """
    return any(name.startswith(head) or f"/{head}" in name for head in ("label/", "depth/"))


def by_label(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The values named ``label/<name>/<value>``, of each label by their names.

    Those named ``depth/<depth>/<value>`` are of a label such as ``depth 2``.
    """
    rows: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        # A label may have a slash in its name, and a value one before a number.
        if found := re.fullmatch(r"(label|depth)/(.+?)/([^/]+(?:/[0-9.]+)?)", name):
            label = found[2] if found[1] == "label" else f"depth {found[2]}"
            rows.setdefault(label, {})[found[3]] = value
    return rows


def labels_table(values: Mapping[str, float]) -> str:
    """The values named ``label/<name>/<value>``, a line for each label; may be empty."""
    rows = by_label(values)
    titles = list(dict.fromkeys(title for row in rows.values() for title in row))
    lines = [
        [label, *(format_value(title, row.get(title, math.nan)) for title in titles)]
        for label, row in rows.items()
    ]
    return text_table(["label", *titles], lines) if rows else ""
