"""Rows that are evaluated and trained on, too: their values say what was learnt by heart."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from weft.config.session import Session
from weft.data.rows import Rows
from weft.recipes.first_look import LOOKED_AT
from weft.recipes.reading import DATA
from weft.tasks.row_batches import RowSource, is_row

__all__ = ["shared_rows"]

ASKED = 1000
"""Rows of the evaluated data that are looked for: a share of them is known to 3 % then."""
BULK = 0.2
"""Share of rows from which on it is said; short texts are often the same by chance."""
HOLDOUT = (
    ", or leave some of train_data to valid_data: train_data.holdout=0.1, and no file of its own"
)
"""What else helps validation data, where the training data has such a setting."""


def shared_rows(session: Session) -> list[str]:
    """A warning for each evaluated data of which many rows are rows of ``train_data``.

    Args:
        session: Has the data, read.
    """
    rows = {name: _rows(session.get(name)) for name in DATA if session.has(name)}
    train = rows.pop(DATA[0], ())
    found = {name: said for name, other in rows.items() if (said := _shared(train, other, name))}
    may_leave = train and hasattr(getattr(session.get(DATA[0]), "config", None), "holdout")
    return [
        f"{said}{HOLDOUT if may_leave and name == 'valid_data' else ''}."
        for name, said in found.items()
    ]


def _shared(train: Sequence[Any], other: Sequence[Any], name: str) -> str:
    """What is to be said of evaluated rows; empty where few of them are trained on.

    Blank lines of a text are rows, but tell nothing.

    >>> rows = [{"text": str(n)} for n in range(10)]
    >>> _shared(rows, rows[5:] + [{"text": "new"}] * 5, "valid_data")[:45]
    '5 of 10 rows of valid_data are in train_data:'
    >>> _shared(rows, rows[:1] + [{"text": "new"}] * 9, "valid_data")
    ''
    """
    if not (len(train) and len(other)):
        return ""  # of ready batches there are no rows
    count = min(ASKED, len(other))
    rows = [other[n * len(other) // count] for n in range(count)]
    asked = [row for row in map(_said, rows) if any(value for _, value in row)]
    count, wanted = len(asked), {*asked}
    there = wanted.intersection(map(_said, _alike(train, rows)))
    found = sum(row in there for row in asked)
    if not found or found < BULK * count:
        return ""
    of_all = "" if count == len(other) else f" (looked for: {count:,} of {len(other):,})"
    every = isinstance(train, Rows) or len(train) <= LOOKED_AT
    first = "" if every else f"the first {LOOKED_AT:,} rows of "
    return (
        f"{found:,} of {count:,} rows of {name} are in {first}train_data{of_all}: its values say "
        "more of what is known by heart than of other texts. Take other rows"
    )


def _alike(train: Sequence[Any], rows: Sequence[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """The rows of training data with a value of these in the column where they differ most."""
    values = {name: {str(row.get(name)) for row in rows} for name in rows[0]}
    name = max(values, key=lambda name: len(values[name]))
    wanted = values[name]
    if isinstance(train, Rows) and name in train.names:  # not a dict for each row
        column = enumerate(train.column(name))
        return (train[n] for n, value in column if value in wanted)
    return (row for row in islice(train, LOOKED_AT) if str(row.get(name)) in wanted)


def _said(row: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple(sorted((name, str(value)) for name, value in row.items()))


def _rows(data: object) -> Sequence[Any]:
    """The rows of data that has them at hand."""
    rows = data.rows() if isinstance(data, RowSource) else data
    return rows if isinstance(rows, Sequence) and len(rows) and is_row(rows[0]) else ()
