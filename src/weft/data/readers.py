"""Reads TSV and plain text as bytes: every line is a good row or a bad one with its reason.

TSV has no quoting here: a quotation mark is data, so a lone one cannot swallow the lines after it.
A block of lines with nothing wrong is decoded and split as a whole; only a block with something odd
is read line by line, and both ways give the same rows (a property test holds them together). What
ends a line: `weft.data.line_blocks`.
"""

import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO, Literal

from weft.data.bad_rows import BadRow, RowCount
from weft.data.line_blocks import MAX_LINE_BYTES, Block, FileNotes, LineBlocks, LongLine, excerpt
from weft.errors import DataError, UserError

__all__ = ["LineFormat", "Table", "read_rows", "read_table", "text_format", "tsv_format"]

Row = tuple[str, ...]


@dataclass(frozen=True)
class LineFormat:
    """How a line becomes columns; made by `tsv_format` and `text_format`.

    Attributes:
        columns: Name to its position (from 0), or to its name in the header line.
        required: Columns that must be there and not be blank; the others are ``""`` where absent.
        separator: Between columns; None where the whole line is the one column.
        header: The first line names the columns and is no row.
        extra_columns: What a column beyond the named ones is: nothing, or a bad row.
        max_line_bytes: A longer line is a bad row, and is not held in memory.
    """

    columns: Mapping[str, int | str]
    required: tuple[str, ...]
    separator: str | None = "\t"
    header: bool = False
    extra_columns: Literal["ignore", "error"] = "ignore"
    max_line_bytes: int = MAX_LINE_BYTES

    def __post_init__(self) -> None:
        known = ", ".join(self.columns)
        if not self.columns:
            raise UserError("columns: wanted at least one column, found none.")
        for name in self.required:
            if name not in self.columns:
                raise UserError(f"required: wanted names of columns ({known}), found {name!r}.")
        for name, at in self.columns.items():
            if isinstance(at, int) and at < 0:
                raise UserError(f"columns: wanted a position from 0 for {name!r}, found {at}.")
            if isinstance(at, str) and not self.header:
                raise UserError(
                    f"columns: {name!r} is to be found by the name {at!r}, which needs header=true."
                )


def tsv_format(
    columns: Sequence[str] | Mapping[str, int | str] = ("source", "target"),
    *,
    required: Sequence[str] | None = None,
    header: bool = False,
    extra_columns: Literal["ignore", "error"] = "ignore",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> LineFormat:
    """Tab-separated columns without quoting.

    Args:
        columns: Names for the first columns in their order, or each name's position (from 0) or
            its name in the header.
        required: The columns that a row cannot be without; all by default. ``("source",)`` reads
            for prediction.
        header: The first line is a header.
        extra_columns: ``ignore`` or ``error``.
        max_line_bytes: The longest line that is read, in bytes.

    Raises:
        UserError: The settings contradict each other.
    """
    if not isinstance(columns, Mapping):
        columns = {name: at for at, name in enumerate(columns)}
    wanted = tuple(columns) if required is None else tuple(required)
    return LineFormat(
        dict(columns),
        wanted,
        header=header,
        extra_columns=extra_columns,
        max_line_bytes=max_line_bytes,
    )


def text_format(column: str = "text", *, max_line_bytes: int = MAX_LINE_BYTES) -> LineFormat:
    """Plain text: a line is a row of one column, tabs included; a blank line is a bad row."""
    return LineFormat({column: 0}, (column,), separator=None, max_line_bytes=max_line_bytes)


@dataclass(frozen=True)
class Table:
    """A file read whole, one list of strings a column.

    Attributes:
        columns: Name to the values of the good rows, in the file's order.
        lines: The line number of each good row.
        bad_rows: All the others.
        count: Good, bad and total.
        notes: Oddities that did no harm.
        sha256: Of the file's bytes.
    """

    columns: dict[str, list[str]]
    lines: list[int]
    bad_rows: list[BadRow]
    count: RowCount
    notes: FileNotes
    sha256: str


def read_rows(
    source: Path | str | BinaryIO, layout: LineFormat
) -> Iterator[dict[str, str] | BadRow]:
    r"""The rows of a file or stream in their order, in bounded memory; a bad row takes its place.

    Args:
        source: A path, ``"-"`` for standard input, or a stream of bytes. What is typed is given
            line by line.
        layout: From `tsv_format` or `text_format`.

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
        parser = _Parser(name, layout)
        for block in LineBlocks(stream, layout.max_line_bytes):
            for row in parser.rows(block):
                yield row if isinstance(row, BadRow) else dict(zip(names, row, strict=True))


def read_table(path: Path | str | BinaryIO, layout: LineFormat, *, fast: bool = True) -> Table:
    r"""Reads a whole file in one pass.

    Args:
        path: As for `read_rows`.
        layout: From `tsv_format` or `text_format`.
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
    with _opened(path) as (stream, name):
        blocks = LineBlocks(stream, layout.max_line_bytes)
        parser = _Parser(name, layout)
        columns: list[list[str]] = [[] for _ in layout.columns]
        lines: list[int] = []
        bad: list[BadRow] = []
        for block in blocks:
            whole = parser.columns(block) if fast else None
            if whole is not None:
                first, values = whole
                for column, new in zip(columns, values, strict=True):
                    column.extend(new)
                lines.extend(range(first, first + len(values[0])))
                continue
            for row in parser.rows(block):
                if isinstance(row, BadRow):
                    bad.append(row)
                else:
                    lines.append(parser.line)
                    for column, value in zip(columns, row, strict=True):
                        column.append(value)
        blocks.notes.lone_cr = parser.lone_cr
        total = blocks.lines - (layout.header and blocks.lines > 0)
    named = dict(zip(layout.columns, columns, strict=True))
    count = RowCount(len(lines), len(bad), total)
    return Table(named, lines, bad, count, blocks.notes, blocks.sha256)


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


@dataclass
class _Parser:
    """Lines to rows for one file; `line` is that of the row given last."""

    file: str
    layout: LineFormat
    line: int = 0
    lone_cr: int = 0
    _at: list[int] = field(default_factory=list)
    _found: int = 0

    def __post_init__(self) -> None:
        if not self.layout.header:
            self._place(self.layout.columns)

    def columns(self, block: Block | LongLine) -> tuple[int, list[list[str]]] | None:
        """First line number and columns of a block; None where it must be read line by line."""
        layout = self.layout
        if (
            isinstance(block, LongLine)
            or not self._at
            or b"\r" in block.data
            or b"\0" in block.data
        ):
            return None
        try:
            text = block.data.decode("utf-8")
        except UnicodeDecodeError:
            return None
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if max(map(len, lines)) * 4 > layout.max_line_bytes:  # at most 4 bytes a character
            return None
        if layout.separator is None:
            found = [lines]
        else:
            rows = [line.split(layout.separator) for line in lines]
            sizes = set(map(len, rows))
            if min(sizes) <= max(self._at) or (self._strict and sizes != {self._wanted}):
                return None
            found = [[row[at] for row in rows] for at in self._at]
        for name, values in zip(layout.columns, found, strict=True):
            if name in layout.required and not all(map(str.strip, values)):
                return None
        return block.line, found

    def rows(self, block: Block | LongLine) -> Iterator[Row | BadRow]:
        """The rows of a block one by one, the bad ones with their reason."""
        if isinstance(block, LongLine):
            self.line = block.line
            reason = self._too_long(block.size)
            if not self._at:
                raise DataError(f"{self.file}:{block.line}: the header cannot be read: {reason}.")
            yield BadRow(self.file, block.line, block.offset, reason, excerpt(block.head))
            return
        lines = block.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        offset = block.offset
        for number, ended in enumerate(lines, block.line):
            self.line = number
            raw = ended.removesuffix(b"\r")
            row = self._row(raw)
            if not self._at:
                self._read_header(row)
            elif isinstance(row, str):
                yield BadRow(self.file, number, offset, row, excerpt(raw))
            else:
                yield row
                self.lone_cr += raw.count(b"\r")
            offset += len(ended) + 1

    @property
    def _strict(self) -> bool:
        return self.layout.extra_columns == "error"

    @property
    def _wanted(self) -> int:
        """How many columns a line has, with the optional ones."""
        return self._found or max(self._at) + 1

    def _place(self, columns: Mapping[str, int | str]) -> None:
        self._at = [at for at in columns.values() if isinstance(at, int)]

    def _row(self, raw: bytes) -> Row | str:
        """The columns of one line (all of them for the header), or what is wrong with it."""
        layout = self.layout
        if len(raw) > layout.max_line_bytes:
            return self._too_long(len(raw))
        try:
            text = raw.decode("utf-8")
        except UnicodeDecodeError as error:
            hint = "; so begins a file in UTF-16" if self._is_utf16(raw) else ""
            return (
                f"bad UTF-8: 0x{raw[error.start]:02x} at byte {error.start} of the line "
                f"({error.reason}{hint})"
            )
        if "\0" in text:
            return f"NUL at byte {raw.index(0)} of the line"
        parts = [text] if layout.separator is None else text.split(layout.separator)
        return self._pick(parts) if self._at else tuple(parts)

    def _is_utf16(self, raw: bytes) -> bool:
        return self.line == 1 and raw.startswith((b"\xff\xfe", b"\xfe\xff"))

    def _pick(self, parts: list[str]) -> Row | str:
        layout, count = self.layout, len(parts)
        needed = 1 + max(
            (
                at
                for name, at in zip(layout.columns, self._at, strict=True)
                if name in layout.required
            ),
            default=-1,
        )
        if count < needed or (self._strict and count > self._wanted):
            least = "" if needed == self._wanted else f"at least {needed} of "
            return f"wanted {least}{_columns(self._wanted)}, found {count}"
        row = tuple(parts[at] if at < count else "" for at in self._at)
        for name, value in zip(layout.columns, row, strict=True):
            if name in layout.required and not value.strip():
                return f"column {name!r} is empty"
        return row

    def _too_long(self, size: int) -> str:
        return f"the line has {size} bytes, and max_line_bytes is {self.layout.max_line_bytes}"

    def _read_header(self, header: Row | str) -> None:
        if isinstance(header, str):
            raise DataError(f"{self.file}:1: the header cannot be read: {header}.")
        places: dict[str, int | str] = {}
        missing = []
        for name, at in self.layout.columns.items():
            if isinstance(at, int):
                places[name] = at
            elif at in header:
                places[name] = header.index(at)
            elif name in self.layout.required:
                missing.append(at)
            else:
                places[name] = sys.maxsize  # an optional column that this file does not have
        if missing:
            raise DataError(
                f"{self.file}:1: wanted the column{'s' if len(missing) > 1 else ''} "
                f"{', '.join(map(repr, missing))}, found the header {', '.join(map(repr, header))}."
            )
        self._found = len(header)
        self._place(places)


def _columns(count: int) -> str:
    return f"{count} column{'s' if count != 1 else ''}"
