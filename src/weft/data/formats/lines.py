"""TSV and plain text: every line is a good row or a bad one with its reason.

TSV has no quoting here: a quotation mark is data, so a lone one cannot swallow the lines after it.
A block of lines with nothing wrong is decoded and split as a whole; only a block with something odd
is read line by line, and both ways give the same rows (a property test holds them together). What
ends a line: `weft.data.line_blocks`.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import BinaryIO, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from weft.data.bad_rows import BadRow
from weft.data.formats.header import header_places
from weft.data.formats.row_format import Row, RowFormat, Scan, numbered, text_of, too_long
from weft.data.line_blocks import MAX_LINE_BYTES, Block, LineBlocks, LongLine, excerpt
from weft.errors import DataError

__all__ = ["LineFormat", "TableScan", "text_format", "tsv_format"]


@dataclass(frozen=True)
class LineFormat(RowFormat):
    """How a line becomes columns; made by `tsv_format` and `text_format`.

    Attributes:
        columns: Name to its position (from 0), or to its name in the header line.
        required: Columns that must be there and not be blank; the others are ``""`` where absent.
        separator: Between columns; None where the whole line is the one column.
        header: The first line names the columns and is no row.
        extra_columns: What a column beyond the named ones is: nothing, or a bad row.
        max_line_bytes: A longer line is a bad row, and is not held in memory.
    """

    separator: str | None = "\t"
    header: bool = False
    extra_columns: Literal["ignore", "error"] = "ignore"
    max_line_bytes: int = MAX_LINE_BYTES

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.check_places(header=self.header)

    @override
    def scan(self, stream: BinaryIO, name: str) -> "TableScan":
        return TableScan(stream, name, self)


def tsv_format(
    columns: Sequence[str] | Mapping[str, int | str] = ("source", "target"),
    *,
    required: Sequence[str] | None = None,
    separator: str = "\t",
    header: bool = False,
    extra_columns: Literal["ignore", "error"] = "ignore",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> LineFormat:
    """Tab-separated columns without quoting.

    Args:
        columns: Names for the first columns in their order, which a header that has these names
            may have in another; or each name's position (from 0) or its name in the header.
        required: The columns that a row cannot be without; all by default. ``("source",)`` reads
            for prediction.
        separator: Between columns.
        header: The first line is a header.
        extra_columns: ``ignore`` or ``error``.
        max_line_bytes: The longest line that is read, in bytes.

    Raises:
        UserError: The settings contradict each other.
    """
    places, wanted = numbered(columns, required)
    return LineFormat(
        places,
        wanted,
        separator,
        header=header,
        extra_columns=extra_columns,
        max_line_bytes=max_line_bytes,
    )


def text_format(column: str = "text", *, max_line_bytes: int = MAX_LINE_BYTES) -> LineFormat:
    """Plain text: a line is a row of one column, tabs included; a blank line is a bad row."""
    return LineFormat({column: 0}, (column,), separator=None, max_line_bytes=max_line_bytes)


class TableScan(Scan):
    """A pass over lines of columns: row by row, or (``parts``) whole blocks at once."""

    def __init__(self, stream: BinaryIO, name: str, layout: LineFormat) -> None:
        self._blocks = LineBlocks(stream, name, layout.max_line_bytes)
        self._parser, self._layout = _Parser(name, layout), layout
        self._block: Block | LongLine | None = None
        self.notes = self._blocks.notes

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        for block in self._blocks:
            for row in self._parser.rows(block):
                self.place = self._parser.place
                yield self._parser.line, row
        self.notes.lone_cr = self._parser.lone_cr

    def parts(self) -> Iterator[tuple[int, list[list[str]]] | tuple[int, Row | BadRow]]:
        """Columns of whole blocks where nothing is odd in them, with the line of their first row.

        Other blocks are given row by row, as iterating gives them. Of a whole block ``places`` has
        the byte where each row begins.
        """
        for block in self._blocks:
            whole = self._parser.columns(block)
            if whole is not None:
                self._block = block
                yield whole
                continue
            for row in self._parser.rows(block):
                self.place = self._parser.place
                yield self._parser.line, row
        self.notes.lone_cr = self._parser.lone_cr

    @property
    def places(self) -> NDArray[np.int64]:
        """Where the rows of the block given last begin, in bytes from 0."""
        block = self._block
        assert isinstance(block, Block)
        ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n")) + 1
        return block.offset + np.append(0, ends[: -1 if block.data.endswith(b"\n") else None])

    @property
    @override
    def total(self) -> int:
        return self._blocks.lines - (self._layout.header and self._blocks.lines > 0)

    @property
    @override
    def sha256(self) -> str:
        return self._blocks.sha256


@dataclass
class _Parser:
    """Lines to rows for one file; `line` and `place` (its byte) are those of the row given last."""

    file: str
    layout: LineFormat
    line: int = 0
    place: int = 0
    lone_cr: int = 0
    _at: list[int] = field(default_factory=list)
    _found: int = 0

    def __post_init__(self) -> None:
        if not self.layout.header:
            self._at = [at for at in self.layout.columns.values() if isinstance(at, int)]

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
            self.line, self.place = block.line, block.offset
            reason = too_long(block.size, self.layout.max_line_bytes)
            if not self._at:
                raise DataError(f"{self.file}:{block.line}: the header cannot be read: {reason}.")
            yield BadRow(self.file, block.line, block.offset, reason, excerpt(block.head))
            return
        lines = block.data.split(b"\n")
        if not lines[-1]:
            lines.pop()
        offset = block.offset
        for number, ended in enumerate(lines, block.line):
            self.line, self.place = number, offset
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

    @cached_property
    def _needed(self) -> int:
        """How many columns a line has at least."""
        named = zip(self.layout.columns, self._at, strict=True)
        return 1 + max((at for name, at in named if name in self.layout.required), default=-1)

    def _row(self, raw: bytes) -> Row | str:
        """The columns of one line (all of them for the header), or what is wrong with it."""
        layout = self.layout
        if len(raw) > layout.max_line_bytes:
            return too_long(len(raw), layout.max_line_bytes)
        text, problem = text_of(raw, first=self.line == 1)
        if problem is not None:
            return problem
        parts = [text] if layout.separator is None else text.split(layout.separator)
        return self._pick(parts) if self._at else tuple(parts)

    def _pick(self, parts: list[str]) -> Row | str:
        layout, count, needed = self.layout, len(parts), self._needed
        if count < needed or (self._strict and count > self._wanted):
            least = "" if needed == self._wanted else f"at least {needed} of "
            return f"wanted {least}{_columns(self._wanted)}, found {count}"
        row = tuple(parts[at] if at < count else "" for at in self._at)
        return layout.blank(row) or row

    def _read_header(self, header: Row | str) -> None:
        if isinstance(header, str):
            raise DataError(f"{self.file}:1: the header cannot be read: {header}.")
        self._found = len(header)
        self._at = header_places(self.layout, header, self.file)


def _columns(count: int) -> str:
    return f"{count} column{'s' if count != 1 else ''}"
