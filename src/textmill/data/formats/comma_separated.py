"""CSV as in RFC 4180: a quoted field may hold separators, line ends and, doubled, quotes.

A record that is no CSV costs its first line only: reading goes on with the line after it, so a lone
quote does not swallow the rest of the file. Python's ``csv`` takes a quote inside a field without
quotes, and refuses a lone carriage return, even if it is strict; so records are split here.
"""

import re
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cache

from typing_extensions import Unpack, override

from textmill.data.formats.header import DelimitedFormat, DelimitedSettings
from textmill.data.formats.row_format import PAIR, Columns, Found, RawLine, Scan, numbered
from textmill.errors import UserError

_QUOTED = re.compile(r'"([^"]*+(?:""[^"]*+)*+)"')
OPEN = "the quote of field {} is never closed"


@cache
def _field(separator: str) -> re.Pattern[str]:
    """A field with quotes, or one without any, then what ends it."""
    end = re.escape(separator)
    return re.compile(rf'(?:{_QUOTED.pattern}|([^"{end}\n]*))({end}|\Z)')


@dataclass(frozen=True)
class CsvFormat(DelimitedFormat):
    """Records of fields; made by `csv_format`. The separator is one ASCII character."""

    separator: str = ","

    @override
    def __post_init__(self) -> None:
        if len(self.separator) != 1 or not self.separator.isascii() or self.separator in '"\r\n\0':
            raise UserError(
                f"separator: wanted one ASCII character, no quote or line end, found "
                f"{self.separator!r}."
            )
        super().__post_init__()

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        places, source = self.places(), self.lines(scan)
        ahead = deque[RawLine]()
        while (line := ahead.popleft() if ahead else next(source, None)) is not None:
            text, problem = line.text()
            if '"' in text:
                fields, problem = self._record(line, ahead, source)
            else:
                fields = text.split(self.separator) if text or not problem else []
            if places is None:
                places = self.read_header(scan, line.number, problem or fields)
                continue
            scan.place, scan.record = line.place, fields or None
            row = problem or self.pick(fields, places)
            yield line.number, line.bad(scan.name, row) if isinstance(row, str) else row
        if places is None:
            self.refuse_headerless(scan)

    def _record(
        self, line: RawLine, ahead: deque[RawLine], source: Iterator[RawLine]
    ) -> tuple[list[str], str | None]:
        """The fields of the record that begins with a line, and what is wrong; else none of them.

        A field is open behind an odd number of quotes, so lines are taken up to the next one that
        has an odd number, and joined once: time is linear in their bytes.
        """
        text, problem = line.text()
        fields = self._split(text)
        taken, parts, size = list[RawLine](), [text], len(line.raw)
        while isinstance(fields, int):
            parts.append((taken[-1] if taken else line).end.decode())
            found = ahead.popleft() if ahead else next(source, None)
            if found is not None:
                taken.append(found)
                size += len(found.raw) + len(found.end)
            if found is None or found.problem is not None or size > self.max_line_bytes:
                fields = self._split("".join(parts))
                fields = OPEN.format(fields) if not isinstance(fields, str) else fields
                break
            more, wrong = found.text()
            parts.append(more)
            if wrong is not None:  # the row's place is that of its first line
                problem = problem or f"line {found.number}: {wrong}"
            if more.count('"') % 2:
                fields = self._split("".join(parts))
        if isinstance(fields, str):
            ahead.extendleft(reversed(taken))
            return [], fields
        return fields, problem

    def _split(self, record: str) -> list[str] | str | int:
        """The fields of a record; what is wrong with it, or the number of a field left open."""
        fields, at, field = list[str](), 0, _field(self.separator)
        while found := field.match(record, at):
            quoted, plain, end = found.groups()
            fields.append(plain if quoted is None else quoted.replace('""', '"'))
            at = found.end()
            if not end:
                return fields
        number = len(fields) + 1
        if record[at] != '"':
            return f"a quote in field {number}, which does not begin with one (RFC 4180: quote it)"
        if _QUOTED.match(record, at) is None:
            return number
        return f"something follows the closing quote of field {number} (RFC 4180: double a quote)"


def csv_format(
    columns: Columns = PAIR,
    *,
    required: Sequence[str] | None = None,
    **settings: Unpack[DelimitedSettings],
) -> CsvFormat:
    """CSV with quotes (RFC 4180); the arguments are those of `tsv_format`.

    The separator is ``","``; give ``";"`` where the comma is the decimal point.
    """
    header = settings.get("header", False)
    return CsvFormat(*numbered(columns, required, header=header), **settings)
