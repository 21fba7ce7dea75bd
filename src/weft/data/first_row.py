"""What the top of a file of columns says: whether its names are there, and were said to be."""

from dataclasses import replace
from pathlib import Path

from weft.data.bad_rows import BadRow
from weft.data.formats.comma_separated import CsvFormat
from weft.data.formats.lines import LineFormat
from weft.data.formats.row_format import Row, RowFormat

__all__ = ["first_row", "is_header"]


def first_row(path: Path, layout: RowFormat) -> Row | None:
    """The columns of the first line, which may be a header.

    Args:
        path: The file.
        layout: How it is read.

    Returns:
        The columns in their order; None of a format that names its columns itself, of columns that
        are found by their names in a header, and of a line that is no row.
    """
    positions = all(isinstance(at, int) for at in layout.columns.values())
    if not isinstance(layout, LineFormat | CsvFormat) or not positions:
        return None
    with path.open("rb") as stream:
        _, row = next(iter(replace(layout, header=False).scan(stream, str(path))), (0, None))
    return None if isinstance(row, BadRow) else row


def is_header(row: Row, columns: Row) -> bool:
    """Whether a row is the names of its columns, and so none.

    Example:
        >>> is_header(("Label", "text "), ("label", "text"))
        True
        >>> is_header(("spam", "text"), ("label", "text"))
        False
    """
    return _plain(row) == _plain(columns)


def _plain(row: Row) -> list[str]:
    return [cell.strip().casefold() for cell in row]
