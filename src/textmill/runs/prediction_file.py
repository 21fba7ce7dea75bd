"""Rows with their answers beside them, as CSV, JSON lines, Parquet or .xlsx, in bounded memory."""

import codecs
import csv
import json
import locale
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from tempfile import TemporaryFile
from typing import Any, Self

import numpy as np

from textmill.data.formats.cells import cell_text, encodable, json_text
from textmill.data.formats.header import free_name
from textmill.errors import DataError, MissingExtraError, UserError
from textmill.exported.row_predictor import characters, row_chunks
from textmill.runtime.disk import HashingFile, storing
from textmill.runtime.files import clean_leftovers, replacing

ROWS, CHARACTERS = 8192, 8_000_000
"""What is written together at most: a row group of Parquet."""
NUMBERS = 1_000_000
"""Numbers of vectors that are written together at most."""
FIRST, LAST = "prediction", "error"
"""The columns that answers always have."""
VECTORS = ".npy"
"""The suffix of a file of vectors alone."""
EXCEL_ROWS, EXCEL_CHARACTERS = 1 << 20, 32767
"""What a sheet of Excel has at most, and a cell: of a longer text the beginning is written."""
EXCEL_NUMBERS = 10**15
"""Whole numbers from here on are written as text: Excel keeps 15 digits."""
MOST_PROBLEMS = 20
"""Errors that are printed for a file that has no column for them."""

Rows = Sequence[Mapping[str, Any]]


def check_suffix(output: Path, *, vectors: bool = False) -> None:
    """Refuses a file whose suffix names no format; only vectors may be written as ``.npy``."""
    *others, last = known = [name for name in SUFFIXES if vectors or name != VECTORS]
    if output.suffix.lower() not in known:
        raise UserError(
            f"--output {output}: its suffix says how answers are written. Wanted "
            f"{', '.join(others)} or {last}, found {output.suffix or 'none'}."
        )


def excel_separator() -> str:
    """What Excel divides the cells of CSV by: a semicolon where the comma is in numbers."""
    before = locale.setlocale(locale.LC_NUMERIC)
    with suppress(locale.Error):
        locale.setlocale(locale.LC_NUMERIC, "")
    point = locale.localeconv()["decimal_point"]
    locale.setlocale(locale.LC_NUMERIC, before)
    return ";" if point == "," else ","


class PredictionFile:
    """Rows and their answers on the way to a file, which appears when it is whole.

    The columns and their types are known after the last row. Until then the rows are in a file
    without a name in the folder of the output, of which a kill leaves nothing. Rows that are
    appended are empty if ``batches`` reads their columns again, of a file of Arrow or Parquet.
    """

    def __init__(
        self,
        output: Path,
        batches: Callable[[], Iterator[Any]] | None = None,
        *,
        vector_size: int | None = None,
        excel: bool = False,
    ) -> None:
        """``excel``: CSV has a byte order mark, and the separators that Excel expects here."""
        self.output, self._batches, self._size = output, batches, vector_size
        self._excel = excel
        self._kept: dict[str, Any] = {}
        self._answers: dict[str, Any] = {FIRST: None}
        self.rows = self.failed = 0
        """Rows so far, and how many of them could not be answered."""
        self.renamed: dict[str, str] = {}
        """Columns of answers whose name the rows have, too, and their names in the file."""
        self.problems = list[str]()
        """The first errors, for a file that has no column for them."""
        with storing(output):
            self._pairs = TemporaryFile(dir=output.parent)  # noqa: SIM115  # closed on exit

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        with suppress(OSError):  # a full disk, which was reported
            self._pairs.close()

    def append(self, block: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]]) -> None:
        """Adds rows, each as its columns and its answer or ``error``."""
        data = f"{json.dumps(block)}\n".encode()
        with storing(self.output, len(data)):
            self._pairs.write(data)
        self.rows += len(block)
        self.failed += sum(LAST in answer for _, answer in block)

    def finish(self, names: Sequence[str] = ()) -> None:
        """Writes the file in the format of its suffix, and puts it in its place.

        A column of Parquet has one type of Arrow; if its values have several, it is text.
        """
        with storing(self.output):
            self._pairs.flush()
        write = SUFFIXES[self.output.suffix.lower()]
        typed = write == PredictionFile._parquet
        self._names = dict.fromkeys(names)
        self._kept |= self._names
        for kept, answers in self._groups():
            if isinstance(kept, list):
                _note(self._kept, kept, typed=typed)
            else:
                self._kept |= dict.fromkeys(kept.schema.names)
            _note(self._answers, answers, typed=typed and self._size is None)
        if typed and self._size is not None:
            import pyarrow

            self._answers[FIRST] = pyarrow.list_(pyarrow.float32(), self._size)
        self._answers[LAST] = self._answers.pop(LAST, None)
        final = dict[str, str]()
        for name in self._answers:
            final[name] = free_name(name, {*self._kept, *final.values()})
        self.renamed = {name: called for name, called in final.items() if name != called}
        clean_leftovers(self.output.parent, of=self.output.name)
        with replacing(self.output) as file:
            write(self, file, final)

    def _groups(self) -> Iterator[tuple[Any, Rows]]:
        """Columns that are written together, as a list of rows or Arrow's, and their answers."""
        self._pairs.seek(0)
        pairs = chain.from_iterable(map(json.loads, self._pairs))
        rows = ROWS if self._size is None else max(1, min(ROWS, NUMBERS // self._size))
        if self._batches is None:
            for some in row_chunks(pairs, characters, size=rows, most=CHARACTERS):
                yield [kept for kept, _ in some], [answer for _, answer in some]
            return
        for batch in self._batches():
            answers = [answer for _, answer in islice(pairs, batch.num_rows)]
            if len(answers) < batch.num_rows:
                break
            yield batch, answers
        else:
            if next(pairs, None) is None:
                return
        raise DataError(
            "The file that is read was changed while its rows were answered. Start again."
        )

    def _rows(self, final: Mapping[str, str]) -> Iterator[dict[str, Any]]:
        for kept, answers in self._groups():
            rows = kept if isinstance(kept, list) else _rows_of(kept)
            for row, answer in zip(rows, answers, strict=True):
                yield {
                    **self._names,
                    **row,
                    **{called: answer.get(name) for name, called in final.items()},
                }

    def _json_lines(self, file: HashingFile, final: Mapping[str, str]) -> None:
        for row in self._rows(final):
            file.write(f"{json_text(row)}\n".encode("utf-8", "backslashreplace"))

    def _csv(self, file: HashingFile, final: Mapping[str, str]) -> None:
        names = [*self._kept, *final.values()]
        text: Any = codecs.getwriter("utf-8")(file, "backslashreplace")  # type: ignore[arg-type]  # it has no seek
        text.write("\ufeff" * self._excel)
        separator = excel_separator() if self._excel else ","

        def cell(value: Any) -> str:
            has_comma = separator == ";" and isinstance(value, float)
            return cell_text(value).replace(".", ",") if has_comma else cell_text(value)

        writer = csv.writer(text, delimiter=separator, lineterminator="\n")
        writer.writerow(names)
        writer.writerows([cell(row.get(name)) for name in names] for row in self._rows(final))

    def _xlsx(self, file: HashingFile, final: Mapping[str, str]) -> None:
        try:
            import xlsxwriter
        except ModuleNotFoundError as error:
            what = f"--output {self.output}: writing a spreadsheet"
            raise MissingExtraError("xlsxwriter", extra="excel", what=what) from error
        if self.rows >= EXCEL_ROWS:
            raise UserError(f"--output {self.output}: {self.rows:,} rows are more than Excel has.")
        names = [*self._kept, *final.values()]
        with TemporaryFile(dir=self.output.parent) as whole:
            with xlsxwriter.Workbook(whole, {"constant_memory": True}) as book:
                sheet = book.add_worksheet()
                rows = ([row.get(name) for name in names] for row in self._rows(final))
                table: Iterator[Sequence[Any]] = chain([names], rows)
                for at, cells in enumerate(table):
                    for column, cell in enumerate(cells):
                        if _is_excel_number(cell):
                            sheet.write_number(at, column, cell)
                        elif text := encodable(cell_text(cell))[:EXCEL_CHARACTERS]:
                            sheet.write_string(at, column, text)
            whole.seek(0)
            while part := whole.read(1 << 20):
                file.write(part)

    def _npy(self, file: HashingFile, final: Mapping[str, str]) -> None:
        shape = (self.rows, self._size or 0)
        head = {"descr": "<f4", "fortran_order": False, "shape": shape}
        np.lib.format.write_array_header_1_0(file, head)
        for _, answers in self._groups():
            block = np.full((len(answers), shape[1]), np.nan, "<f4")
            for row, answer in zip(block, answers, strict=True):
                if LAST in answer:
                    self.problems += [answer[LAST]] * (len(self.problems) < MOST_PROBLEMS)
                else:
                    row[:] = answer[FIRST]
            file.write(block.tobytes())

    def _parquet(self, file: HashingFile, final: Mapping[str, str]) -> None:
        import pyarrow
        from pyarrow.parquet import ParquetWriter

        kept = [(encodable(name), _type(kind)) for name, kind in self._kept.items()]
        schema = pyarrow.schema(kept)
        if self._batches is not None:
            schema = next(self._batches()).schema  # with its metadata, which pandas reads
        for name, called in final.items():
            schema = schema.append(pyarrow.field(encodable(called), _type(self._answers[name])))
        with ParquetWriter(pyarrow.PythonFile(_Unclosed(file), mode="w"), schema) as writer:
            for kept, answers in self._groups():
                typed = isinstance(kept, list)
                columns = _arrays(self._kept, kept) if typed else [*kept.columns]
                columns += _arrays(self._answers, answers)
                if answers:
                    writer.write_batch(pyarrow.record_batch(columns, schema=schema))


SUFFIXES: dict[str, Callable[[PredictionFile, HashingFile, Mapping[str, str]], None]] = {
    ".csv": PredictionFile._csv,
    ".jsonl": PredictionFile._json_lines,
    ".ndjson": PredictionFile._json_lines,
    VECTORS: PredictionFile._npy,
    ".parquet": PredictionFile._parquet,
    ".xlsx": PredictionFile._xlsx,
}
"""How each format is written."""


class _Unclosed:
    """A file that pyarrow writes, and leaves open."""

    closed = False

    def __init__(self, file: HashingFile) -> None:
        self.write = file.write


def _is_excel_number(value: Any) -> bool:
    """Whether a cell of Excel, a float64 of which 15 digits are kept, holds a value exactly."""
    if isinstance(value, float):
        return math.isfinite(value)
    return type(value) is int and abs(value) < EXCEL_NUMBERS


def _note(columns: dict[str, Any], rows: Rows, *, typed: bool) -> None:
    """Adds the columns of some rows, with their types if wanted; ``str`` stands for text."""
    for name in dict.fromkeys(chain.from_iterable(rows)):
        found = _type_of([row.get(name) for row in rows]) if typed else None
        columns[name] = _common(columns.get(name), found)


def _type_of(values: Sequence[Any]) -> Any:
    import pyarrow

    if len(kinds := {type(value) for value in values} - {type(None)}) > 1 and bool in kinds:
        return str  # pyarrow would take true for a number
    try:
        found = pyarrow.array(values).type
    except (pyarrow.ArrowException, ValueError, OverflowError):  # of several types; too large
        return str
    return str if "struct<>" in str(found) else found  # Parquet has no empty structs


def _common(one: Any, other: Any) -> Any:
    """The common type of two columns, text if they differ; null has the type of the other.

    Integers and floats become text: 2**53 + 1 has no float of its own.
    """
    import pyarrow

    if one is None or other is None or str in (one, other):
        return one if other is None or one is str else other
    schemas = [pyarrow.schema([("", kind)]) for kind in (one, other)]
    try:
        return pyarrow.unify_schemas(schemas).field(0).type
    except pyarrow.ArrowException:
        return str


def _type(kind: Any) -> Any:
    """A type of Arrow; a column that has only nulls is text."""
    import pyarrow

    is_text = kind is None or kind is str or pyarrow.types.is_null(kind)
    return pyarrow.string() if is_text else kind


def _arrays(types: Mapping[str, Any], rows: Rows) -> list[Any]:
    import pyarrow

    arrays = []
    for name, kind in types.items():
        values: list[Any] = [row.get(name) for row in rows]
        if kind is str:
            values = [None if value is None else encodable(cell_text(value)) for value in values]
        arrays.append(pyarrow.array(values, type=_type(kind)))
    return arrays


def _rows_of(batch: Any) -> list[dict[str, Any]]:
    columns = [_values(column) for column in batch.columns]
    names = batch.schema.names
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def _values(column: Any) -> list[Any]:
    """The values of a column; times and the like as Arrow writes them."""
    import pyarrow

    from textmill.data.formats.arrow_files import plain

    column = plain(column)
    if pyarrow.types.is_temporal(column.type):
        with suppress(pyarrow.ArrowException):
            column = column.cast(pyarrow.string())
    try:
        return list(column.to_pylist())
    except ValueError:  # a text that is not UTF-8
        values = [None] * len(column)
        for number, cell in enumerate(column):
            with suppress(ValueError):
                values[number] = cell.as_py()
        return values
