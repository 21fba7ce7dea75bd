"""The first sheet of a spreadsheet (.xlsx, .xls, .xlsb, .ods), read by python-calamine."""

import hashlib
import io
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time
from typing import Any

from typing_extensions import Unpack, override

from textmill.data.bad_rows import BadRow
from textmill.data.formats.header import DelimitedFormat, DelimitedSettings
from textmill.data.formats.row_format import PAIR, Columns, Found, Scan, numbered
from textmill.errors import DataError, MissingExtraError

SHOWN = 80  # characters of a bad row


@dataclass(frozen=True)
class ExcelFormat(DelimitedFormat):
    """Rows of a sheet, whose cells are what a CSV file would have of them; `excel_format` makes it.

    A row's line is its number in the sheet. Rows without any value are left out.
    """

    separator: str | None = "\t"

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        places = self.places()
        for number, cells in enumerate(sheet_rows(scan), 1):
            if not any(cells):
                continue
            if places is None:
                places = self.read_header(scan, cells)
                continue
            scan.record = cells
            row = self.pick(cells, places)
            if isinstance(row, str):
                yield number, BadRow(scan.name, number, row, " | ".join(cells)[:SHOWN])
            else:
                yield number, row


def sheet_rows(scan: Scan) -> Iterator[list[str]]:
    """All rows of the first sheet, as texts."""
    try:
        import python_calamine
    except ModuleNotFoundError as error:
        raise MissingExtraError(
            "python_calamine", extra="excel", what=f"{scan.name}: reading a spreadsheet"
        ) from error
    content = scan.stream.read()
    scan.sha256 = hashlib.sha256(content).hexdigest()
    try:
        sheet = python_calamine.load_workbook(io.BytesIO(content)).get_sheet_by_index(0)
    except python_calamine.CalamineError as error:
        raise DataError(
            f"{scan.name}: no excel file that can be read: {str(error)[:300]}. Save it as CSV."
        ) from error
    except IndexError:
        raise DataError(f"{scan.name}: a spreadsheet without a sheet.") from None
    for row in sheet.iter_rows():
        yield [_text(value) for value in row]


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
    **settings: Unpack[DelimitedSettings],
) -> ExcelFormat:
    """A spreadsheet; the arguments are those of `tsv_format` that are about columns."""
    header = settings.get("header", False)
    return ExcelFormat(*numbered(columns, required, header=header), **settings)
