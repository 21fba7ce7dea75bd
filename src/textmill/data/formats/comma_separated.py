"""CSV as in RFC 4180: a quoted field may hold separators, line ends and, doubled, quotes.

A record that is no CSV costs its first line only: reading goes on with the line after it, so a lone
quote does not swallow the rest of the file.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import BinaryIO

from typing_extensions import Unpack, override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.header import DelimitedFormat, DelimitedScan, DelimitedSettings
from textmill.data.formats.row_format import PAIR, Columns, RawLine, Row, numbered
from textmill.errors import UserError
from textmill.text.encodings import decoded, is_part


class _CsvScan(DelimitedScan["CsvFormat"]):
    def __init__(self, stream: BinaryIO, name: str, layout: "CsvFormat") -> None:
        super().__init__(stream, name, layout)
        separator = re.escape(layout.separator)
        # A field with quotes, or one without any, then what ends it.
        self._field = re.compile(
            rf'(?:"([^"]*+(?:""[^"]*+)*+)"|([^"{separator}\n]*))({separator}|\Z)'.encode()
        )
        # What a line that begins inside a quoted field holds of it, where it does not end in it.
        self._inside = re.compile(rb'[^"]*+(?:""[^"]*+)*+\Z')
        self._ahead: deque[RawLine] = deque()

    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        lines = self.lines()
        while line := self._next(lines):
            fields, problem = self._record(line, lines)
            if not self.at:
                self.read_header(problem or fields)
                continue
            self.total += 1
            self.place, self.record = line.offset, fields or None
            row = problem or self.pick(fields)
            yield line.number, line.bad(self.name, row) if isinstance(row, str) else row

    def _next(self, lines: Iterator[RawLine]) -> RawLine | None:
        return self._ahead.popleft() if self._ahead else next(lines, None)

    def _record(self, line: RawLine, lines: Iterator[RawLine]) -> tuple[list[str], str | None]:
        """The fields of the record that begins with a line, and what is wrong with that line.

        There are none if it has no record.
        """
        if line.problem is not None or b'"' not in line.raw:
            text, problem = line.text()
            return text.split(self.layout.separator) if text or not problem else [], problem
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
            return [], wrong
        whole = b"".join(one.raw + one.end for one in taken[:-1]) + taken[-1].raw
        encoding = self.layout.encoding
        _, problem = decoded(whole, encoding, first=line.number == 1)
        return [decoded(field, encoding)[0] for field in fields], problem

    def _grow(self, taken: list[RawLine], size: int, lines: Iterator[RawLine]) -> bytes | None:
        """What follows ``size`` bytes up to the line that ends a field; None where there is none.

        Each line is looked at once, and all are joined once: time is linear in their bytes.
        """
        ended = len(taken) - 1
        size += len(taken[-1].end)
        while True:
            if (line := self._next(lines)) is None:
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


@dataclass(frozen=True)
class CsvFormat(DelimitedFormat):
    """Records of fields; made by `csv_format`. The separator is one ASCII character."""

    separator: str = ","

    SCAN = _CsvScan

    @override
    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n\0':
            raise UserError(
                f"separator: wanted one ASCII character, no quote or line end, found "
                f"{self.separator!r}."
            )
        super().__post_init__()
        if is_part(self.separator, self.encoding):
            raise UserError(
                f"separator: {self.separator!r} is a part of characters in {self.encoding}. Make "
                f"UTF-8 of the file: iconv -f {self.encoding} -t utf-8 FILE > OTHER"
            )


def csv_format(
    columns: Columns = PAIR,
    *,
    required: Sequence[str] | None = None,
    **settings: Unpack[DelimitedSettings],
) -> CsvFormat:
    """CSV with quotes (RFC 4180); the arguments are those of `tsv_format`.

    The separator is ``","``; give ``";"`` where the comma is the decimal point.

    Raises:
        UserError: The settings contradict each other.
    """
    return CsvFormat(*numbered(columns, required), **settings)
