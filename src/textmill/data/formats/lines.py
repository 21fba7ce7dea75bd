"""TSV and plain text: every line is a good row or a bad one with its reason.

TSV has no quoting here: a quotation mark is data, so a lone one cannot swallow the lines after it.
A block of lines with nothing wrong is decoded and split as a whole; only a block with something odd
is read line by line, and both ways give the same rows (a property test holds them together). What
ends a line: `textmill.data.line_blocks`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray
from typing_extensions import Unpack, override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.header import DelimitedFormat, DelimitedScan, DelimitedSettings
from textmill.data.formats.row_format import PAIR, Columns, Row, numbered
from textmill.data.line_blocks import MAX_LINE_BYTES, Block, LongLine
from textmill.text.encodings import UTF8


class TableScan(DelimitedScan["LineFormat"]):
    """A pass over lines of columns: row by row, or (``parts``) whole blocks at once."""

    _block: Block

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        for block in self.blocks:
            yield from self._rows(block)
        self._end()

    @override
    def parts(self) -> Iterator[tuple[int, Row | BadRow | list[list[str]]]]:
        """Columns of whole blocks where nothing is odd in them, with the line of their first row.

        Other blocks are given row by row, as iterating gives them. Of a whole block ``places`` has
        the byte where each row begins.
        """
        for block in self.blocks:
            whole = self._columns(block)
            if whole is None:
                yield from self._rows(block)
            else:
                assert isinstance(block, Block)
                self._block = block
                yield block.line, whole
        self._end()

    @property
    def places(self) -> NDArray[np.int64]:
        """Where the rows of the block given last begin, in bytes from 0."""
        block = self._block
        ends = np.flatnonzero(np.frombuffer(block.data, np.uint8) == ord("\n")) + 1
        return block.offset + np.append(0, ends[: -1 if block.data.endswith(b"\n") else None])

    def _end(self) -> None:
        lines = self.blocks.lines
        self.total, self.sha256 = lines - (self.layout.header and lines > 0), self.blocks.sha256

    def _columns(self, block: Block | LongLine) -> list[list[str]] | None:
        """The columns of a block; None where it must be read line by line."""
        layout = self.layout
        if isinstance(block, LongLine) or not self.at or b"\r" in block.data or b"\0" in block.data:
            return None
        try:
            text = block.data.decode(layout.encoding)
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
            if min(sizes) <= max(self.at) or (self.is_strict and sizes != {self.width}):
                return None
            found = [[row[at] for row in rows] for at in self.at]
        return None if layout.has_problem(found) else found

    def _rows(self, block: Block | LongLine) -> Iterator[tuple[int, Row | BadRow]]:
        """The rows of a block one by one, the bad ones with their reason."""
        for line in self.split(block):
            self.place = line.offset
            text, problem = line.text()
            separator = self.layout.separator
            cells = [text] if separator is None else text.split(separator)
            if not self.at:
                self.read_header(problem or cells)
                continue
            self.record = cells if text else None
            row = problem or self.pick(cells)
            if isinstance(row, str):
                yield line.number, line.bad(self.name, row)
            else:
                yield line.number, row
                self.notes.lone_cr += line.raw.count(b"\r")


@dataclass(frozen=True)
class LineFormat(DelimitedFormat):
    """How a line becomes columns; made by `tsv_format` and `text_format`."""

    separator: str | None = "\t"

    SCAN = TableScan


class _BareLines(LineFormat):
    longest_called = "the longest that is read"


def bare_lines(*, longest: int, encoding: str = UTF8) -> LineFormat:
    """Lines as they are, blank ones too, where no setting says how many bytes one may have."""
    return _BareLines({"text": 0}, (), separator=None, max_line_bytes=longest, encoding=encoding)


def tsv_format(
    columns: Columns = PAIR,
    *,
    required: Sequence[str] | None = None,
    **settings: Unpack[DelimitedSettings],
) -> LineFormat:
    """Tab-separated columns without quoting.

    Args:
        columns: Names for the first columns in their order, which a header that has these names
            may have in another; or each name's position (from 0) or its name in the header.
        required: The columns that a row cannot be without; all by default. ``("source",)`` reads
            for prediction.
        settings: Of :class:`~textmill.data.formats.header.DelimitedFormat`: ``separator``,
            ``header``, ``extra_columns``, ``max_line_bytes`` and ``encoding``.

    Raises:
        UserError: The settings contradict each other.
    """
    return LineFormat(*numbered(columns, required), **settings)


def text_format(
    column: str = "text", *, max_line_bytes: int = MAX_LINE_BYTES, encoding: str = UTF8
) -> LineFormat:
    """Plain text: a line is a row of one column, tabs included; a blank line is a bad row."""
    layout = LineFormat({column: 0}, (column,), separator=None, encoding=encoding)
    return replace(layout, max_line_bytes=max_line_bytes)
