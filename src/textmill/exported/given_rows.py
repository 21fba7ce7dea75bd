"""What a caller gives as rows: a list, a table, or one row whose values have names."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from textmill.errors import DataError

SLICE = 256
"""Rows of a table that become Python objects at once."""

TO_ROWS: dict[str, dict[str, str]] = {
    "to_pylist": {},
    "to_dicts": {},
    "to_dict": {"orient": "records"},
}
"""Methods that give a table's rows as dicts, of pyarrow, polars and pandas: none is imported."""


def as_mapping(given: Any) -> Mapping[str, Any] | None:
    """One row as a mapping; None of anything else.

    A row is a mapping, a named tuple, or what has ``keys`` that are all strings: a row of sqlite3,
    or the pandas Series that is a row of a DataFrame.

    Example:
        >>> from collections import namedtuple
        >>> as_mapping(namedtuple("Message", "text label")("Hi.", "ham"))
        {'text': 'Hi.', 'label': 'ham'}
        >>> as_mapping(["Hi."]) is as_mapping("Hi.") is None
        True
    """
    if isinstance(given, Mapping):
        return given
    if isinstance(given, str | list):
        return None
    if isinstance(given, tuple) and hasattr(given, "_asdict"):
        fields: dict[str, Any] = given._asdict()
        return fields
    if _is_table(given) or not hasattr(given, "keys"):
        return None
    names = [*given.keys()]
    return dict(given) if names and all(isinstance(name, str) for name in names) else None


def rows_in(given: Any) -> Iterable[Any]:
    """The rows of a table, or the items of a list or of another iterable that has an order.

    A table is a DataFrame of pandas or polars, or a Table or RecordBatch of pyarrow. Each of its
    rows is a dict, made when it is asked for.

    Raises:
        DataError: It is one row or one text, has no order, or cannot be read row by row.

    Example:
        >>> import pyarrow
        >>> list(rows_in(pyarrow.table({"text": ["Hi.", "Run!"], "n": [1, 2]})))
        [{'text': 'Hi.', 'n': 1}, {'text': 'Run!', 'n': 2}]
    """
    kind = type(given).__name__
    if isinstance(given, str):
        raise DataError("Wanted a list of rows, found one str. Put it into a list.")
    if (row := as_mapping(given)) is not None:
        raise DataError(
            f"Wanted a list of rows, found one {kind} with {_names_of(row)}. A single row goes "
            f"into a list: [row].{columns_hint(given, [*row])}"
        )
    if isinstance(given, set | frozenset):
        raise DataError(f"Wanted rows in an order, found a {kind}, which has none. Make it a list.")
    if _is_table(given):
        return _rows_of_table(given)
    if hasattr(given, "to_pylist"):  # an array of pyarrow, whose items are no strings of Python
        listed: list[Any] = given.to_pylist()
        return listed
    if isinstance(given, bytes) or not isinstance(given, Iterable):
        raise DataError(f"Wanted a string, a mapping of columns, or a list of these; found {kind}.")
    return given


def columns_hint(given: Any, names: Sequence[str]) -> str:
    """What to write, as a sentence after a space, if one row seems to hold many.

    A mapping may hold the columns of a table, and a Series the texts of many rows.

    Example:
        >>> columns_hint({"text": ["Hi.", "Run!"]}, ["text"])
        ' If these are columns of several rows, give a table: pyarrow.table(columns).'
        >>> columns_hint({"text": "Hi."}, ["text"])
        ''
    """
    if type(given).__name__ == "Series":
        return " Of a Series of texts make a list: list(texts)."
    row = as_mapping(given) or {}
    values = [row.get(name) for name in names]
    if all(isinstance(value, Iterable) and not isinstance(value, str) for value in values):
        return " If these are columns of several rows, give a table: pyarrow.table(columns)."
    return ""


def _is_table(given: Any) -> bool:
    """Whether it has named columns; to iterate over a table may give their names."""
    return hasattr(given, "columns") and not isinstance(given, Mapping)


def _rows_of_table(table: Any) -> Iterator[dict[str, Any]]:
    method = next((name for name in TO_ROWS if hasattr(table, name)), None)
    if method is None or not hasattr(table, "__len__"):
        raise DataError(
            f"Wanted a list of rows, found a {type(table).__name__}, which cannot be read row by "
            "row. Make it a list with a dict for each row, or a DataFrame of pandas or polars."
        )
    sliced = getattr(table, "iloc", table)
    return (
        row
        for start in range(0, len(table), SLICE)
        for row in getattr(sliced[start : start + SLICE], method)(**TO_ROWS[method])
    )


def _names_of(row: Mapping[str, Any]) -> str:
    names = [*map(str, row)]
    return f"the names {', '.join(names[:5])}{' ...' if len(names) > 5 else ''}"
