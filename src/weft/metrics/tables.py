"""Tables of values as plain text."""

import math
import re
from collections.abc import Mapping, Sequence

from weft.metrics.formats import format_value, is_count
from weft.metrics.metric import Direction
from weft.runtime.terminal import printable

__all__ = ["by_label", "is_of_label", "labels_table", "text_table", "values_table"]


def text_table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns under a header; a column of numbers is aligned to the right, others to the left.

    Example:
        >>> print(text_table(["value", "n"], [["bleu", "1,003"], ["chrf", "12"]]))
        value      n
        bleu   1,003
        chrf      12
    """
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
    counts: Mapping[str, int] | None = None,
    directions: Mapping[str, Direction] | None = None,
    details: Mapping[str, str] | None = None,
) -> str:
    """The values of one evaluation, each with how many rows or tokens it is of.

    Args:
        values: The values by name.
        counts: For a value, over how many it was measured.
        directions: For a value, which values are better.
        details: For a value, what is needed to repeat it, such as sacrebleu's signature.

    Example:
        >>> print(
        ...     values_table(
        ...         {"loss": 2.5, "bleu": 40.912},
        ...         counts={"bleu": 1003},
        ...         directions={"loss": "lower", "bleu": "higher"},
        ...         details={"bleu": "nrefs:var|tok:13a"},
        ...     )
        ... )
        value  result      n  better
        loss    2.500      -  lower
        bleu    40.91  1,003  higher  nrefs:var|tok:13a
    """
    counts, directions, details = counts or {}, directions or {}, details or {}
    optional: dict[str, Mapping[str, str]] = {
        "n": {name: f"{count:,}" for name, count in counts.items()},
        "better": {name: way for name, way in directions.items() if not is_count(name)},
        "": details,
    }
    shown = {title: column for title, column in optional.items() if column}
    rows = [
        [
            name,
            format_value(name, value),
            *(_cell(title, column, name) for title, column in shown.items()),
        ]
        for name, value in values.items()
    ]
    return text_table(["value", "result", *shown], rows)


def _cell(title: str, column: Mapping[str, str], name: str) -> str:
    return column.get(name, "-" if title == "n" else "")


def is_of_label(name: str) -> bool:
    """Whether a value is one of a single label; there are many, which would hide the others.

    Example:
        >>> is_of_label("label/ham/f1"), is_of_label("macro_f1")
        (True, False)
    """
    return name.startswith("label/")


def by_label(values: Mapping[str, float]) -> dict[str, dict[str, float]]:
    """The values named ``label/<name>/<value>``, of each label by their names.

    Example:
        >>> by_label({"loss": 0.1, "label/a/b/f1": 0.5, "label/c/recall_at_precision/0.9": 1.0})
        {'a/b': {'f1': 0.5}, 'c': {'recall_at_precision/0.9': 1.0}}
    """
    rows: dict[str, dict[str, float]] = {}
    for name, value in values.items():
        # A label may have a slash in its name, and a value one before a number.
        found = re.fullmatch(r"label/(.+?)/([^/]+(?:/[0-9.]+)?)", name)
        if found:
            rows.setdefault(found[1], {})[found[2]] = value
    return rows


def labels_table(values: Mapping[str, float]) -> str:
    """The values named ``label/<name>/<value>``, a line for each label; empty where there is none.

    Example:
        >>> ham = {"label/ham/precision": 0.5, "label/ham/recall_at_precision/0.9": 1.0}
        >>> print(labels_table({"loss": 0.1, **ham, "label/a/b/precision": 0.25}))
        label  precision  recall_at_precision/0.9
        ham       50.0 %                  100.0 %
        a/b       25.0 %                        -
    """
    rows = by_label(values)
    titles = list(dict.fromkeys(title for row in rows.values() for title in row))
    lines = [
        [label, *(format_value(title, row.get(title, math.nan)) for title in titles)]
        for label, row in rows.items()
    ]
    return text_table(["label", *titles], lines) if rows else ""
