"""What a look at the data shows at once: first row, shared rows, lengths.

Columns in the wrong order train as well as the right ones: a text can be a label, and a label a
text. A person sees it in one row.
"""

from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from typing import Any

import numpy as np

from textmill.config.ingredient import DATA
from textmill.config.planning.plan import Plan
from textmill.config.planning.session import Session
from textmill.data.batches import EpochBatches
from textmill.data.mixture import Mixture
from textmill.data.rows import Rows
from textmill.data.text_pairs import TextPairs
from textmill.preflight.load_data import all_data
from textmill.tasks.batches.row_batches import RowBatches, RowSource, is_row
from textmill.text.cells import unlisted
from textmill.text.processors.text_processor import TextProcessor
from textmill.training.loop import Trainer

SHOWN_CHARACTERS = 60
"""Of a value; a whole row then fits on a line or two."""
LOOKED_AT = 200_000
"""Rows that are looked at where each must be read or made anew: a million take five seconds."""


def first_row(text: TextProcessor, data: object, name: str = "train_data") -> str:
    """The first row of ``train_data`` as it was read: what is given, and what is wanted.

    Returns:
        A line; empty where there are no rows at hand, as with ready batches.
    """
    rows = rows_at_hand(data, text.columns)
    if not rows:
        return ""
    row = rows[0]
    given, wanted = (
        ", ".join(f"{name} {shortened(unlisted(row[name]))}" for name in names if name in row)
        for names in (text.input_columns, text.target_columns)
    )
    return f"{name} begins with: {given}" + (f" -> {wanted}" if wanted else "")


def mixed_sources(batches: object) -> str:
    """How many rows of each source of ``train_data`` an epoch has; empty where none are mixed."""
    mixture: Mixture | None = getattr(batches, "mixture", None)
    if mixture is None:
        return ""
    epochs = mixture.epochs(1)
    each = zip(mixture.names, mixture.quotas, strict=True)
    said = (f"{quota:,} of {name} ({epochs[name]:g} of its own)" for name, quota in each)
    return f"train_data: rows in an epoch: {', '.join(said)}"


def nothing_selected(plan: Plan) -> str:
    """A note that without ``valid_data`` nothing is selected; empty if there is such data."""
    selection = plan.settings.get("trainer", {}).get("selection")
    measured = any("valid_data" in each.order for each in (plan, *plan.tasks.values()))
    if measured or not isinstance(selection, Mapping):
        return ""
    metric = selection.get("metric")
    return (
        "There is no valid_data, so nothing is selected: the best weights are the last ones, and "
        f"trainer.selection.metric={metric} is of no effect."
    )


def rows_at_hand(data: object, columns: Collection[str] = ()) -> Sequence[Mapping[str, Any]]:
    """The rows that can be looked at without a pass over the data; none of ready batches."""
    rows = data.rows() if isinstance(data, RowSource) else data
    return rows if isinstance(rows, Sequence) and len(rows) and is_row(rows[0], columns) else ()


def shortened(value: Any) -> str:
    """A value on a line, cut where it is long."""
    text = value if isinstance(value, str) else str(value)
    cut = text if len(text) <= SHOWN_CHARACTERS else f"{text[: SHOWN_CHARACTERS - 3]}..."
    return repr(cut) if isinstance(value, str) else cut


ASKED = 1000
"""Rows of the evaluated data that are looked for: a share of them is known to 3 % then."""
BULK = 0.2
"""Share of rows from which on it is said; short texts are often the same by chance."""
HOLDOUT = (
    ", or leave some of train_data to valid_data: train_data.holdout=0.1, and no file of its own"
)
"""What else helps validation data, where the training data has such a setting."""


def shared_rows(session: Session) -> list[str]:
    """A warning for each evaluated data of which many rows are rows of ``train_data``."""
    rows = {name: rows_at_hand(session.get(name)) for name in DATA if session.has(name)}
    train, found = rows.pop(DATA[0], ()), []
    may_leave = train and hasattr(getattr(session.get(DATA[0]), "config", None), "holdout")
    for name, other in rows.items():
        if said := _shared(train, other, name):
            found.append(f"{said}{HOLDOUT if may_leave and name == 'valid_data' else ''}.")
    return found


def _shared(train: Sequence[Any], other: Sequence[Any], name: str) -> str:
    """A note about evaluated rows that are also trained on; empty if there are few.

    Blank lines of a text are rows, but tell nothing.
    """
    if not (len(train) and len(other)):
        return ""  # of ready batches there are no rows
    count = min(ASKED, len(other))
    rows = [other[n * len(other) // count] for n in range(count)]
    asked = [row for row in map(_said, rows) if any(value.strip() for _, value in row)]
    count, wanted = len(asked), {*asked}
    # Rows of training data with a value of these in the column where they differ most.
    values = {name: {str(row.get(name)) for row in rows} for name in rows[0]}
    column = max(values, key=lambda name: len(values[name]))
    if isinstance(train, Rows) and column in train.names:  # not a dict for each row
        places = enumerate(train.column(column))
        alike = (train[n] for n, value in places if value in values[column])
    else:
        looked = islice(train, LOOKED_AT)
        alike = (row for row in looked if str(row.get(column)) in values[column])
    there = wanted.intersection(map(_said, alike))
    found = sum(row in there for row in asked)
    if not found or found < BULK * count:
        return ""
    of_all = "" if count == len(other) else f" (looked for: {count:,} of {len(other):,})"
    every = isinstance(train, Rows) or len(train) <= LOOKED_AT
    first = "" if every else f"the first {LOOKED_AT:,} rows of "
    return (
        f"{found:,} of {count:,} rows of {name} are in {first}train_data{of_all}: its values say "
        "more about memorized rows than about new texts. Take other rows"
    )


def _said(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in row.items()))


def data_summary(session: Session, trainer: object) -> dict[str, dict[str, Any]]:
    """Facts of each data set by its name; what it cannot tell of itself is left out.

    Rows are told of the data, batches of the trainer; one of the recipe's own has none to show.
    """
    made: dict[str, object] = {}
    if isinstance(trainer, Trainer):
        for source in trainer.data.measured:
            batches = source.train, source.valid, source.test
            made |= {
                f"{source.name}.{n}".lstrip("."): b for n, b in zip(DATA, batches, strict=True)
            }
    found = {}
    for name, (own, inner) in all_data(session).items():
        facts = summary_of_batches(made.get(name))
        data = own.get(inner)
        if isinstance(data, TextPairs):
            facts |= {"rows": data.count.good, "bad_rows": data.count.bad}
        if isinstance(data, TextPairs) and data.holdout is not None:
            facts["holdout"] = data.holdout.rule
        if facts:
            found[name] = facts
    return found


def summary_of_batches(batches: object) -> dict[str, Any]:
    """Rows, batches, padding and lengths in tokens of one epoch.

    Of more rows than are planned at once the padding is that of the first window, and the number
    of batches follows from it.
    """
    epoch = batches.batches if isinstance(batches, RowBatches) else None
    if not isinstance(epoch, EpochBatches):
        return {}
    found = epoch.statistics
    shares = {"least": 0, "median": 50, "most_95": 95, "most": 100}
    lengths = {
        column: {name: int(np.percentile(values, share)) for name, share in shares.items()}
        for column, values in epoch.lengths.items()
    }
    tokens = found.tokens  # of an epoch that was planned at once
    if epoch.num_windows > 1:
        tokens = sum(int(values.sum()) for values in epoch.lengths.values())
    counts = {"rows": epoch.num_rows, "batches": len(epoch), "tokens": tokens}
    return {**counts, "padding": round(found.padding, 6), "lengths": lengths}
