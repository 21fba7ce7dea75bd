"""Warnings about columns that are likely not labels: amounts, ids, several labels in a cell."""

import math
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import islice
from typing import Any

from textmill.data.rows import Rows
from textmill.preflight.data_preview import LOOKED_AT, rows_at_hand, shortened
from textmill.text.columns.labels import LabelColumn, LabelsColumn
from textmill.text.features.labels import Labels, split_labels
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import TextProcessor

LEAST_ROWS = 50
"""Of fewer rows, half may well have labels of their own."""
FEW = 4
"""Rows of a label, on average; with fewer the column is likely one of texts or of numbers."""
RATINGS = 20
"""Labels that are numbers: as many may be grades or ratings. Whole numbers may also be those of
classes, if each has as many rows."""
SEPARATORS = "|;,/+&"
"""What may stand between two labels of a row."""
MARKS = "|;,"
"""Those that are hardly part of a name."""


def odd_labels(
    text: TextProcessor, data: object, settings: Mapping[str, Mapping[str, Any]]
) -> list[str]:
    """Warnings about labels found in ``train_data`` that are likely not labels.

    Labels declared in the settings are taken as meant.
    """
    rows, found = rows_at_hand(data, text.columns), list[str]()
    first = "" if isinstance(rows, Rows) or len(rows) <= LOOKED_AT else f"{LOOKED_AT:,} rows"
    where = f" (Counted in its first {first}.)" if first else ""
    for name, labels in text.ingredients.items():
        if not isinstance(labels, Labels) or settings.get(name, {}).get("names") or not rows:
            continue
        found += _several_in_one(name, labels, text)
        if said := _many(name, labels, len(rows)):
            found.append(said)
            continue
        groups: dict[str, list[str]] = {}
        for label in labels:
            groups.setdefault("".join(label.casefold().split()), []).append(label)
        alike = [group for group in groups.values() if len(group) > 1]
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


def _many(name: str, labels: Labels, count: int) -> str:
    """A warning if there are as many labels as texts or amounts would be; else empty."""
    numbers = len(labels) > RATINGS and all(map(_is_number, labels))
    numbers &= count < RATINGS * len(labels) or not all(map(str.isdecimal, labels))
    few = 2 if labels.multiple else FEW  # rows have several each, as words have tags
    if not numbers and not (count >= LEAST_ROWS and few * len(labels) > count):
        return ""
    what = "different labels, all of them numbers," if numbers else "different labels"
    learn = " To learn amounts, take an experiment of numbers (regression/..., similarity/...)."
    return (
        f"{name}: {count:,} rows of train_data have {len(labels):,} {what} in their column "
        f"'{labels.column}', such as {shortened(labels[0])}. If another column has the labels, "
        f"correct the order in train_data.columns, or name it by {name}.column.{learn * numbers} "
        f"If these are the labels, declare them in {name}.names, and this warning goes away."
    )


def _is_number(label: str) -> bool:
    try:
        return math.isfinite(float(label))
    except ValueError:
        return False


def _several_in_one(name: str, labels: Labels, text: TextProcessor) -> list[str]:
    """A warning where labels seem to be several with something between them."""
    targets = text.targets.values() if isinstance(text, ColumnsText) else ()
    kinds = LabelColumn | LabelsColumn  # tags of words are divided by white space, and may have any
    if not any(isinstance(each, kinds) and each.labels is labels for each in targets):
        return []
    for separator in SEPARATORS:
        joined = [label for label in labels if _is_joined(label, separator, labels)]
        if len(joined) < 2:
            continue
        at = "white space" if labels.separator is None else repr(labels.separator)
        now = f"labels divided at {at}" if labels.multiple else "one label"
        word = "" if labels.multiple else f"{name}.multiple=true "
        setting = f"{word}{shlex.quote(f'{name}.separator={separator}')}"
        return [
            f"{name}: {len(joined):,} of the {len(labels):,} labels in the column "
            f"'{labels.column}', such as {shortened(joined[0])}, seem to be several with "
            f"{separator!r} between them. A cell is read as {now}. If a row has several labels: "
            f"{setting}. If each is one label, declare the labels in {name}.names, and this "
            "warning goes away."
        ]
    return []


def _is_joined(label: str, separator: str, labels: Labels) -> bool:
    """Whether a label is likely several with the separator between them.

    Of rows that have several labels one part that is a label says so, and a mark that no name has;
    of others all parts must be labels.
    """
    parts = [part.strip() for part in label.split(separator)]
    if labels.multiple:
        return len(parts) > 1 and (separator in MARKS or any(map(labels.has, parts)))
    return len(parts) > 1 and all(map(labels.has, parts))


def _counts(labels: Labels, rows: Sequence[Mapping[str, Any]]) -> Counter[str]:
    """How many rows each label has; each of several labels of a row counts."""
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
        f"declare them in {name}.names, and this warning goes away."
    )
