"""Reads files of rows: every row is a good one or a bad one with its place and reason.

How a file becomes rows is its format's: `textmill.data.formats`.
"""

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

import numpy as np
from numpy.typing import NDArray

from textmill.data.bad_rows import KEPT, BadRow, RowCount
from textmill.data.formats.lines import LineFormat as LineFormat
from textmill.data.formats.lines import text_format as text_format
from textmill.data.formats.lines import tsv_format as tsv_format
from textmill.data.formats.row_format import RowFormat
from textmill.data.line_blocks import FileNotes
from textmill.errors import UserError


@dataclass(frozen=True, kw_only=True)
class ReadFile:
    """What one pass over a file has found.

    Attributes:
        lines: The line number of each good row, from 1.
        bad_rows: The others; of a great many the first `KEPT`.
        count: Good, bad and total.
        notes: Oddities that did no harm.
        sha256: Of the file's bytes.
    """

    lines: Sequence[int] | NDArray[np.int64]
    bad_rows: Sequence[BadRow]
    count: RowCount
    notes: FileNotes
    sha256: str


@dataclass(frozen=True, kw_only=True)
class Table(ReadFile):
    """A file read whole, one list of strings a column.

    Attributes:
        columns: Name to the values of the good rows, in the file's order.
    """

    columns: dict[str, list[str]]


def read_rows(
    source: Path | str | BinaryIO, layout: RowFormat
) -> Iterator[dict[str, str] | BadRow]:
    r"""The rows of a file or stream in their order, in bounded memory; a bad row takes its place.

    Args:
        source: A path, ``"-"`` for standard input, or a stream of bytes. What is typed is given
            line by line.
        layout: From `tsv_format`, `text_format`, `csv_format`, ...

    Raises:
        UserError: The file cannot be opened.
        DataError: The header does not have the columns.

    Example:
        >>> import io
        >>> layout = tsv_format(("source", "target"), required=("source",))
        >>> for row in read_rows(io.BytesIO(b"Hi.\tSalut.\nRun!\n\xff\n"), layout):
        ...     print(row)
        {'source': 'Hi.', 'target': 'Salut.'}
        {'source': 'Run!', 'target': ''}
        <stream>:3 (byte 16): bad UTF-8: 0xff at byte 0 of the line (invalid start byte)
    """
    names = tuple(layout.columns)
    with _opened(source) as (stream, name):
        for _, row in layout.scan(stream, name):
            yield row if isinstance(row, BadRow) else dict(zip(names, row, strict=True))


def read_table(path: Path | str | BinaryIO, layout: RowFormat, *, fast: bool = True) -> Table:
    r"""Reads a whole file in one pass.

    Args:
        path: As for `read_rows`.
        layout: From `tsv_format`, `text_format`, `csv_format`, ...
        fast: Whole blocks at once where nothing is odd in them; the rows are the same.

    Raises:
        UserError: The file cannot be opened.
        DataError: The header does not have the columns.

    Example:
        >>> import io
        >>> table = read_table(io.BytesIO(b"Hi.\tSalut.\nRun!\n"), tsv_format())
        >>> table.columns
        {'source': ['Hi.'], 'target': ['Salut.']}
        >>> print(table.count, *table.bad_rows, sep="; ")
        2 rows: 1 good, 1 bad; <stream>:2 (byte 11): wanted 2 columns, found 1
    """
    columns: list[list[str]] = [[] for _ in layout.columns]
    lines: list[int] = []
    bad, num_bad = list[BadRow](), 0
    with _opened(path) as (stream, name):
        scan = layout.scan(stream, name)
        for line, found in scan.parts() if fast else scan:
            if isinstance(found, BadRow):
                num_bad += 1
                bad += [found] if num_bad <= KEPT else []
            elif isinstance(found, tuple):
                lines.append(line)
                for column, value in zip(columns, found, strict=True):
                    column.append(value)
            else:
                lines.extend(range(line, line + len(found[0])))
                for column, values in zip(columns, found, strict=True):
                    column.extend(values)
        return Table(
            columns=dict(zip(layout.columns, columns, strict=True)),
            lines=lines,
            bad_rows=bad,
            count=RowCount(len(lines), num_bad, scan.total),
            notes=scan.notes,
            sha256=scan.sha256,
        )


@contextmanager
def _opened(source: Path | str | BinaryIO) -> Iterator[tuple[BinaryIO, str]]:
    if not isinstance(source, Path | str):
        yield source, str(getattr(source, "name", "<stream>"))
    elif str(source) == "-":
        yield sys.stdin.buffer, "-"
    else:
        try:
            stream = Path(source).open("rb")  # noqa: SIM115  # closed below; only its opening is tried
        except OSError as error:
            raise UserError(f"{source}: cannot be read: {error.strerror}.") from error
        with stream:
            yield stream, str(source)
