"""What a look at the training data shows at once: its first row, and labels that are hardly any.

Columns in the wrong order train as well as the right ones: a text can be a label, and a label a
text. A person sees it in one row.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from weft.config.plan import Plan
from weft.data.rows import Rows
from weft.tasks.row_batches import RowSource, is_row
from weft.text.labels import Labels, split_labels
from weft.text.paths import TextPath

__all__ = ["first_row", "nothing_selected", "odd_labels", "shortened"]

SHOWN_CHARACTERS = 60
"""Of a value; a whole row then fits on a line or two."""
LOOKED_AT = 200_000
"""Rows that are looked at where each must be read or made anew: a million take five seconds."""
LEAST_ROWS = 50
"""Of fewer rows, half may well have labels of their own."""


def first_row(text: TextPath, data: object) -> str:
    """The first row of the training data as it was read: what is given, and what is wanted.

    Args:
        text: The task's text path, which knows the columns.
        data: ``train_data``.

    Returns:
        A line; empty where there are no rows at hand, as with ready batches.
    """
    rows = _rows(text, data)
    if not rows:
        return ""
    row = rows[0]
    given, wanted = (
        ", ".join(f"{name} {shortened(row[name])}" for name in names if name in row)
        for names in (text.input_columns, text.target_columns)
    )
    return f"train_data begins with: {given}" + (f" -> {wanted}" if wanted else "")


def odd_labels(
    text: TextPath, data: object, settings: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Warnings of labels, taken from ``train_data``, that are likely none.

    Args:
        text: The task's text path, which holds the labels.
        data: ``train_data``.
        settings: Those of the plan; declared labels are as they were meant.
    """
    rows, found = _rows(text, data), list[str]()
    first = "" if isinstance(rows, Rows) or len(rows) <= LOOKED_AT else f"{LOOKED_AT:,} rows"
    where = f" (Counted in its first {first}.)" if first else ""
    for name, labels in text.ingredients.items():
        if not isinstance(labels, Labels) or settings.get(name, {}).get("names") or not rows:
            continue
        if len(rows) >= LEAST_ROWS and 2 * len(labels) > len(rows):
            found.append(_many_labels(name, labels, len(rows)))
            continue
        alike = _alike(labels)
        if not alike and not labels.has(rows[0][labels.column]):
            continue  # of several labels a row the first is no word over a column
        counts = _counts(labels, rows)
        found += [_one_label(name, labels, group, counts) + where for group in alike]
        once = [label for label in labels if counts[label] == 1]
        if len(rows) >= LEAST_ROWS and once == [rows[0][labels.column]]:
            found.append(
                f"{name}: {once[0]!r}, which train_data begins with, is the label of no other row. "
                f"If its first row is a header: train_data.header=true{where}"
            )
    return found


def _many_labels(name: str, labels: Labels, count: int) -> str:
    return (
        f"{name}: {count:,} rows of train_data have {len(labels):,} different labels in their "
        f"column '{labels.column}', such as {shortened(labels[0])}. If another column has the "
        f"labels, correct the order in train_data.columns, or name it by {name}.column; if these "
        f"are the labels, {name}.names may declare them, and this is not said."
    )


def _alike(labels: Labels) -> list[list[str]]:
    """Labels that differ by case or spaces alone."""
    groups: dict[str, list[str]] = {}
    for label in labels:
        groups.setdefault("".join(label.casefold().split()), []).append(label)
    return [group for group in groups.values() if len(group) > 1]


def _counts(labels: Labels, rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How many rows each label has; of several in a row each counts."""
    column = labels.column
    looked = islice(rows, LOOKED_AT)
    values = rows.column(column) if isinstance(rows, Rows) else [row[column] for row in looked]
    keys = (tuple(value) if isinstance(value, list) else value for value in values)
    found = Counter[str]()
    for value, count in Counter[Any](values if isinstance(rows, Rows) else keys).items():
        several = isinstance(value, str | tuple) and not labels.has(value)
        every = split_labels(value, labels.separator, column=column, row=0) if several else [value]
        for name in every:
            found[name] += count
    return found


def _one_label(name: str, labels: Labels, group: Sequence[str], counts: Counter[str]) -> str:
    rows = {label: f" ({counts[label]:,})" if counts[label] else "" for label in group}
    listed = ", ".join(f"{shortened(label)}{count}" for label, count in rows.items())
    return (
        f"{name}: labels of the column '{labels.column}' that differ by case or spaces alone are "
        f"different labels: {listed}. If they are one, write it in one way in all data; if not, "
        f"{name}.names may declare them, and this is not said."
    )


def nothing_selected(plan: Plan) -> str:
    """What becomes of the selection where there is no ``valid_data``; else empty.

    Args:
        plan: The plan; a trainer of the recipe's own may have no selection.
    """
    selection = plan.settings.get("trainer", {}).get("selection")
    if "valid_data" in plan.order or not isinstance(selection, Mapping):
        return ""
    metric = selection.get("metric")
    return (
        "There is no valid_data, so nothing is selected: the best weights are the last ones, and "
        f"trainer.selection.metric={metric} is of no effect."
    )


def _rows(text: TextPath, data: object) -> Sequence[Mapping[str, Any]]:
    """The rows that can be looked at without a pass over the data."""
    rows = data.rows() if isinstance(data, RowSource) else data
    if not isinstance(rows, Sequence) or not len(rows) or not is_row(rows[0], text.columns):
        return ()
    return rows


def shortened(value: Any) -> str:
    """A value on a line, cut where it is long.

    Example:
        >>> shortened("a very long text " * 9)
        "'a very long text a very long text a very long text a very...'"
    """
    text = value if isinstance(value, str) else str(value)
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."
    return repr(cut) if isinstance(value, str) else cut
