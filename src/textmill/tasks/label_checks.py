"""Warnings about labels: no example, unseen in training, one for all rows, never predicted."""

import json
import shlex
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from textmill.metrics.classification import ConfusionCounts
from textmill.text.columns.labels import LabelsColumn, NamedLabels, SeveralLabels
from textmill.text.features.labels import SHOWN, UNSEEN, shown
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import Encoded


def label_notes(text: ColumnsText, encoded: Encoded) -> Iterator[str]:
    """A warning for each column whose labels cannot all be learnt from the rows."""
    for role, column in text.targets.items():
        if not isinstance(column, NamedLabels):
            continue
        numbers = encoded[role].values
        counts = np.bincount(numbers[numbers >= 0], minlength=len(column.labels))
        names = [name for name, count in zip(column.labels, counts, strict=True) if not count]
        where = f"in column '{column.name}'"
        if len(names) == len(counts) - 1 and not isinstance(column, LabelsColumn):
            only = column.labels[int(counts.argmax())]
            yield (
                f"Every label {where} of train_data is {only!r}: a model of it answers nothing "
                "else. Add rows of other labels, or look for the labels in another column."
            )
        elif names:
            have = "has" if len(names) == 1 else "have"
            yield (
                f"{len(names)} of the {len(counts)} labels {where} {have} no example in "
                f"train_data: {shown(names)}. What has none is hardly ever an answer. Add rows of "
                "it, or leave it out of the declared labels."
            )


def unseen_rows(text: ColumnsText, encoded: Encoded) -> dict[str, NDArray[np.int64]]:
    """Numbers of the rows with labels that training has not seen, by the column's role."""
    found = {}
    for role in text.targets:
        column = encoded[role]
        at = np.flatnonzero(column.values == UNSEEN)
        if len(at):
            found[role] = np.unique(np.searchsorted(column.offsets, at, side="right") - 1)
    return found


def unseen_note(
    text: ColumnsText, unseen: Mapping[str, NDArray[np.int64]], rows: Sequence[Mapping[str, Any]]
) -> str:
    """A sentence for each column with labels that training has not seen."""
    notes = []
    for role, numbers in unseen.items():
        found = Counter(name for n in numbers for name in text.unseen_in(rows[int(n)], role))
        shown = ", ".join(f"{name!r} {count:,}" for name, count in found.most_common(SHOWN))
        more = ", ..." if len(found) > SHOWN else ""
        they = "these labels" if isinstance(text.targets[role], SeveralLabels) else "they"
        notes.append(
            f"{len(numbers):,} of {len(rows):,} rows have a label in column "
            f"'{text.targets[role].name}' that training has not seen ({shown}{more}): {they} count "
            "as wrong, and are left out of the loss."
        )
    return " ".join(notes)


def never_predicted(tallies: Mapping[str, ConfusionCounts]) -> list[str]:
    r"""Warns about labels that occur in the data but are never predicted, and says what to do.

    The weights that it offers make all labels count alike: rows over labels times a label's rows.
    """
    occurring = {name: tally for name, tally in tallies.items() if tally.expected}
    # A label of a single row may well be missed.
    never = {n: t.expected for n, t in occurring.items() if not t.predicted and t.expected > 1}
    if not never:
        return []
    rows = sum(tally.expected for tally in occurring.values())
    names = sorted(never, key=lambda name: -never[name])[:SHOWN]
    shown = ", ".join(f"{name!r} ({float(never[name]):,.10g} rows)" for name in names)
    more = ", ..." if len(never) > len(names) else ""
    weights = {name: round(rows / len(occurring) / never[name]) for name in names}
    heavier = json.dumps({n: w for n, w in weights.items() if w > 1}, ensure_ascii=False)
    verb, them = ("is", "it") if len(never) == 1 else ("are", "them")
    weigh = f"To make {them} count more: task.loss.weights={shlex.quote(heavier)}; or train"
    remedy = weigh if len(heavier) > len("{}") else "Train"
    return [
        f"{len(never)} of the {len(occurring)} labels of the rows {verb} never predicted: "
        f"{shown}{more}. {remedy} longer, or add rows of {them}."
    ]
