"""A sheet of a spreadsheet (.xlsx, .xls, .xlsb, .ods), read by python-calamine."""

import hashlib
import io
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from datetime import datetime, time
from pathlib import Path
from typing import Any

from typing_extensions import Unpack, override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.header import (
    HEADER_LINES,
    SHOWN_HEADER,
    DelimitedFormat,
    DelimitedSettings,
)
from textmill.data.formats.row_format import PAIR, Columns, Found, Scan, numbered
from textmill.errors import DataError, MissingExtraError

SHOWN = 80  # characters of a bad row


@dataclass(frozen=True)
class ExcelFormat(DelimitedFormat):
    """Rows of a sheet, whose cells are what a CSV file would have of them; `excel_format` makes it.

    A row's line is its number in the sheet. Rows without any value are left out. Cells that are
    merged over several rows are in each of them.

    Attributes:
        sheet: Its name; None: the first with a header that has the columns' names, else the first.
    """

    separator: str | None = "\t"
    sheet: str | None = field(default=None, kw_only=True)

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        places = self.places()
        book = open_book(scan)
        for number, cells in enumerate(sheet_rows(book, self._sheet(book, scan.name)), 1):
            if not any(cells):
                continue
            if places is None:
                places = self.read_header(scan, number, cells)
                continue
            scan.record = cells
            row = self.pick(cells, places)
            if isinstance(row, str):
                yield number, BadRow(scan.name, number, row, " | ".join(cells)[:SHOWN])
            else:
                yield number, row
        if places is None:
            self.refuse_headerless(scan)

    def _sheet(self, book: Any, name: str) -> str:
        """The name of the sheet to read."""
        names = _names(book)
        if not names:
            raise DataError(f"{name}: a spreadsheet without a sheet.")
        if self.sheet is None:
            fits = (
                each for each in names if self.header and self._names and self._fits(book, each)
            )
            return next(fits, names[0])
        if self.sheet not in names:
            shown = ", ".join(map(repr, names))[:SHOWN_HEADER]
            raise DataError(
                f"{name}: wanted the sheet {self.sheet!r}, found {shown}: {self.prefix}sheet=..."
            )
        return self.sheet

    def _fits(self, book: Any, sheet: str) -> bool:
        first = itertools.islice(filter(any, sheet_rows(book, sheet)), HEADER_LINES)
        return any(map(self._has_names, first))


def open_book(scan: Scan) -> Any:
    """The spreadsheet that a pass reads."""
    try:
        import python_calamine
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "python_calamine", extra="excel", what=f"{scan.name}: reading a spreadsheet"
        ) from error
    content = scan.stream.read()
    scan.sha256 = hashlib.sha256(content).hexdigest()
    try:
        return python_calamine.load_workbook(io.BytesIO(content))
    except python_calamine.CalamineError as error:
        raise DataError(
            f"{scan.name}: no excel file that can be read: {str(error)[:300]}. Save it as CSV."
        ) from error


def sheet_names(path: Path) -> list[str]:
    """The names of a spreadsheet's sheets."""
    with path.open("rb") as stream:
        return _names(open_book(excel_format().scan(stream, str(path))))


def _names(book: Any) -> list[str]:
    return [each.name for each in book.sheets_metadata if "WorkSheet" in str(each.typ)]


def sheet_rows(book: Any, name: str) -> Iterator[list[str]]:
    """All rows of a sheet, as texts."""
    sheet = book.get_sheet_by_name(name)
    left = (sheet.start or (0, 0))[1]  # rows begin with it
    tops = dict[tuple[int, int], tuple[int, int]]()  # what is below the first cell of merged ones
    for (top, column), (bottom, _) in getattr(sheet, "merged_cell_ranges", None) or ():
        tops |= {(row, column - left): (top, column - left) for row in range(top + 1, bottom + 1)}
    merged, kept = {*tops.values()}, dict[tuple[int, int], str]()
    for number, row in enumerate(sheet.iter_rows()):
        cells = [_text(value) for value in row]
        if tops:
            for column, cell in enumerate(cells):
                place = number, column
                if place in merged:
                    kept[place] = cell
                elif not cell and place in tops:
                    cells[column] = kept.get(tops[place], "")
        yield cells


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and value.is_integer():
        return str(int(value))
    if isinstance(value, datetime) and value.time() == time():
        value = value.date()
    return str(value).replace("\0", "")


def excel_format(
    columns: Columns = PAIR,
    *,
    required: Sequence[str] | None = None,
    sheet: str | None = None,
    **settings: Unpack[DelimitedSettings],
) -> ExcelFormat:
    """A spreadsheet; the arguments are its sheet, and those of `tsv_format` about columns."""
    header = settings.get("header", False)
    return ExcelFormat(*numbered(columns, required, header=header), sheet=sheet, **settings)
