"""CSV as in RFC 4180: a quoted field may hold separators, line ends and, doubled, quotes.

A record that is no CSV costs its first line only: reading goes on with the line after it, so a lone
quote does not swallow the rest of the file.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal

from typing_extensions import override

from weft.data.bad_rows import BadRow
from weft.data.formats.header import header_places
from weft.data.formats.row_format import LineScan, RawLine, Row, RowFormat, Scan, numbered, text_of
from weft.data.line_blocks import MAX_LINE_BYTES
from weft.errors import DataError, UserError

__all__ = ["CsvFormat", "csv_format"]


@dataclass(frozen=True)
class CsvFormat(RowFormat):
    """Records of fields; made by `csv_format`.

    Attributes:
        separator: Between fields: one ASCII character.
        header: The first record names the columns and is no row.
        extra_columns: What a field beyond the named ones is: nothing, or a bad row.
        max_line_bytes: A longer record is a bad row.
    """

    separator: str = ","
    header: bool = False
    extra_columns: Literal["ignore", "error"] = "ignore"
    max_line_bytes: int = MAX_LINE_BYTES

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n\0':
            raise UserError(
                f"separator: wanted one ASCII character, no quote or line end, found "
                f"{self.separator!r}."
            )
        self.check_places(header=self.header)

    @override
    def scan(self, stream: BinaryIO, name: str) -> Scan:
        return _CsvScan(stream, name, self)


def csv_format(
    columns: Sequence[str] | Mapping[str, int | str] = ("source", "target"),
    *,
    required: Sequence[str] | None = None,
    separator: str = ",",
    header: bool = False,
    extra_columns: Literal["ignore", "error"] = "ignore",
    max_line_bytes: int = MAX_LINE_BYTES,
) -> CsvFormat:
    """CSV with quotes (RFC 4180); the arguments are those of `tsv_format`.

    Args:
        columns: Names for the first columns in their order, which a header that has these names
            may have in another; or each name's position (from 0) or its name in the header.
        required: The columns that a row cannot be without; all by default.
        separator: Between fields; ``";"`` where the comma is the decimal point.
        header: The first record is a header.
        extra_columns: ``ignore`` or ``error``.
        max_line_bytes: The longest record that is read, in bytes.

    Raises:
        UserError: The settings contradict each other.
    """
    places, wanted = numbered(columns, required)
    return CsvFormat(
        places,
        wanted,
        separator=separator,
        header=header,
        extra_columns=extra_columns,
        max_line_bytes=max_line_bytes,
    )


class _CsvScan(LineScan):
    def __init__(self, stream: BinaryIO, name: str, layout: CsvFormat) -> None:
        super().__init__(stream, name, layout.max_line_bytes)
        self._layout = layout
        separator = re.escape(layout.separator)
        # A field with quotes, or one without any, then what ends it.
        self._field = re.compile(
            rf'(?:"([^"]*+(?:""[^"]*+)*+)"|([^"{separator}\n]*))({separator}|\Z)'.encode()
        )
        # What a line that begins inside a quoted field holds of it, where it does not end in it.
        self._inside = re.compile(rb'[^"]*+(?:""[^"]*+)*+\Z')
        self._ahead: deque[RawLine] = deque()
        self._records = 0
        self._at: list[int] = [at for at in layout.columns.values() if isinstance(at, int)]
        self._width = max(self._at, default=-1) + 1
        self._is_placed = not layout.header

    @property
    @override
    def total(self) -> int:
        return self._records

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        lines = self.lines()
        while True:
            line = self._ahead.popleft() if self._ahead else next(lines, None)
            if line is None:
                return
            record = self._record(line, lines)
            if not self._is_placed:
                self._read_header(record)
                continue
            self._records += 1
            self.place = line.offset
            row = self._pick(record) if isinstance(record, list) else record
            yield line.number, line.bad(self.name, row) if isinstance(row, str) else row

    def _record(self, line: RawLine, lines: Iterator[RawLine]) -> list[str] | str:
        """The fields of the record that begins with a line, or what is wrong with that line."""
        if line.problem is not None or b'"' not in line.raw:
            text, problem = text_of(line.raw, first=line.number == 1)
            return line.problem or problem or text.split(self._layout.separator)
        fields, taken = list[bytes](), [line]
        part, start = line.raw, 0  # what is not split yet, and where in the record it begins
        while isinstance(wrong := self._split_fields(part, start, fields), int):
            further = self._grow(taken, start + len(part), lines)
            if further is None:
                wrong = f"the quote at byte {start + wrong} of the line is never closed"
                break
            part, start = part[wrong:] + further, start + wrong
        if wrong is not None:
            self._ahead.extendleft(reversed(taken[1:]))
            return wrong
        whole = b"".join(one.raw + one.end for one in taken[:-1]) + taken[-1].raw
        _, problem = text_of(whole, first=line.number == 1)
        return problem or [field.decode() for field in fields]

    def _grow(self, taken: list[RawLine], size: int, lines: Iterator[RawLine]) -> bytes | None:
        """What follows ``size`` bytes up to the line that ends a field; None where there is none.

        Each line is looked at once, and all are joined once: time is linear in their bytes.
        """
        ended = len(taken) - 1
        size += len(taken[-1].end)
        while True:
            line = self._ahead.popleft() if self._ahead else next(lines, None)
            if line is None:
                return None
            taken.append(line)
            size += len(line.raw) + len(line.end)
            if line.problem is not None or size > self.longest:
                return None
            if not self._inside.match(line.raw):
                break
        between = b"".join(one.raw + one.end for one in taken[ended + 1 : -1])
        return taken[ended].end + between + line.raw

    def _split_fields(self, part: bytes, start: int, fields: list[bytes]) -> str | int | None:
        """Appends the fields of a part that begins with one; None where they are all.

        Else what is wrong, or where in the part the quote is that is still open.
        """
        at = 0
        while True:
            found = self._field.match(part, at)
            if found is None:
                return self._wrong(part, at, start)
            quoted, plain, end = found.groups()
            fields.append(plain if quoted is None else quoted.replace(b'""', b'"'))
            at = found.end()
            if not end:
                return None

    def _wrong(self, part: bytes, at: int, start: int) -> str | int:
        if part[at : at + 1] != b'"':
            quote = part.index(b'"', at)
            return (
                f"a quote at byte {start + quote} of the record, in a field that does not "
                "begin with one (RFC 4180: quote the field and double its quotes)"
            )
        closed = re.compile(rb'"[^"]*+(?:""[^"]*+)*+"').match(part, at)
        if closed is None:
            return at
        return (
            f"something follows the closing quote at byte {start + closed.end() - 1} of the record "
            "(RFC 4180: double a quote inside a field)"
        )

    def _pick(self, fields: list[str]) -> Row | str:
        layout, count = self._layout, len(fields)
        places = list(zip(layout.columns, self._at, strict=True))
        needed = 1 + max((at for name, at in places if name in layout.required), default=-1)
        if count < needed or (layout.extra_columns == "error" and count > self._width):
            return f"wanted {self._width} column{'s' * (self._width != 1)}, found {count}"
        row = tuple(fields[at] if at < count else "" for at in self._at)
        return layout.blank(row) or row

    def _read_header(self, header: list[str] | str) -> None:
        if isinstance(header, str):
            raise DataError(f"{self.name}:1: the header cannot be read: {header}.")
        self._at = header_places(self._layout, header, self.name)
        self._width, self._is_placed = len(header), True
