"""TSV and plain text: every line is a good row or a bad one with its reason.

TSV has no quoting here: a quotation mark is data, so a lone one cannot swallow the lines after it.
A block of lines with nothing wrong is decoded and split as a whole; only a block with something odd
is read line by line, and both ways give the same rows (a property test holds them together). What
ends a line: `textmill.data.line_blocks`.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from typing_extensions import Unpack, override

from textmill.data.formats.header import DelimitedFormat, DelimitedSettings, Places
from textmill.data.formats.row_format import PAIR, Columns, Found, Scan, numbered
from textmill.data.line_blocks import MAX_LINE_BYTES, Block, LongLine
from textmill.text.encodings import UTF8


@dataclass(frozen=True)
class LineFormat(DelimitedFormat):
    """How a line becomes columns; made by `tsv_format` and `text_format`."""

    separator: str | None = "\t"

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        places, separator = self.places(), self.separator
        for block in self.blocks(scan):
            if (
                whole
                and places
                and not self.lists
                and (columns := self._columns(block, places)) is not None
            ):
                yield block.line, columns
                continue
            for line in self.split(block):
                text, problem = line.text()
                cells = [text] if separator is None else text.split(separator)
                if places is None:
                    places = self.read_header(scan, line.number, problem or cells)
                    continue
                scan.place, scan.record = line.place, cells if text else None
                row = problem or self.pick(cells, places)
                yield line.number, line.bad(scan.name, row) if isinstance(row, str) else row
        if places is None:
            self.refuse_headerless(scan)

    def _columns(self, block: Block | LongLine, places: Places) -> list[list[str]] | None:
        """The columns of a block; None where it must be read line by line."""
        if isinstance(block, LongLine) or b"\r" in block.data or b"\0" in block.data:
            return None
        try:
            text = block.data.decode(block.encoding)
        except UnicodeDecodeError:
            return None
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        if max(map(len, lines)) * 4 > self.max_line_bytes:  # at most 4 bytes a character
            return None
        if self.separator is None:
            found = [lines]
        else:
            rows = [line.split(self.separator) for line in lines]
            sizes = set(map(len, rows))
            strict = self.extra_columns == "error"
            if min(sizes) <= max(places.at) or (strict and sizes != {places.width}):
                return None
            found = [[row[at] for row in rows] for at in places.at]
        return None if self.has_problem(found) else found


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
        columns: Names of the first columns in their order, or of those in the header in any order;
            or each name with its position (from 0) or its name in the header.
        required: The columns that a row cannot be without; all by default. ``("source",)`` reads
            for prediction.
        settings: Of :class:`~textmill.data.formats.header.DelimitedFormat`: ``separator``,
            ``header``, ``extra_columns``, ``max_line_bytes`` and ``encoding``.
    """
    header = settings.get("header", False)
    return LineFormat(*numbered(columns, required, header=header), **settings)


def text_format(
    column: str = "text", *, max_line_bytes: int = MAX_LINE_BYTES, encoding: str = UTF8
) -> LineFormat:
    """Plain text: a line is a row of one column, tabs included; a blank line is a bad row."""
    layout = LineFormat({column: 0}, (column,), separator=None, encoding=encoding)
    return replace(layout, max_line_bytes=max_line_bytes)
