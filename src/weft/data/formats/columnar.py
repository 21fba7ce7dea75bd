"""Parquet and Arrow files, mapped into memory and read a row group or record batch at a time."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from weft.data.bad_rows import BadRow
from weft.data.formats.arrow_types import is_list, is_readable, is_text, plain
from weft.data.formats.cells import ANSWERS, CellError, as_list, cell_of, json_answers
from weft.data.formats.header import columns_setting, proposed
from weft.data.formats.json_lines import named_places
from weft.data.formats.row_format import PAIR, Columns, NumberedFormat, NumberedScan, Row
from weft.errors import DataError

__all__ = ["ColumnarFormat", "arrow_format", "parquet_format"]

BATCH_ROWS = 8192
BLOCK_BYTES = 1 << 20
SHOWN = 80  # characters of a bad row
NAMED = "columns of Parquet and Arrow files"


@dataclass(frozen=True)
class _Problem:
    """A value that cannot be a cell."""

    text: str
    """What is wrong with it."""


_Value = str | bytes | None | _Problem


class _ColumnarScan(NumberedScan["ColumnarFormat"]):
    @override
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        try:
            if not self.stream.seekable():
                raise DataError(
                    f"{self.name}: a {self.layout.kind} file cannot be read from a pipe. Name "
                    "the file."
                )
            digest = hashlib.sha256()
            while block := self.stream.read(BLOCK_BYTES):
                digest.update(block)
            self.sha256 = digest.hexdigest()
            self.stream.seek(0)
        except OSError as error:
            raise DataError(f"{self.name}: cannot be read: {error.strerror}.") from error
        yield from self.numbered(0)

    @override
    def numbered(self, first: int) -> Iterator[tuple[int, Row | BadRow]]:
        """Row groups before the first row are not read."""
        import pyarrow

        try:
            yield from self._rows(first)
        except (pyarrow.ArrowException, OSError) as error:
            raise DataError(
                f"{self.name}: no {self.layout.kind} file that can be read: "
                f"{str(error).strip().splitlines()[0]:.300}"
            ) from error

    def _rows(self, first: int) -> Iterator[tuple[int, Row | BadRow]]:
        is_parquet = self.layout.kind == "parquet"
        read = _parquet if is_parquet else _arrow
        for start, offset, batch in read(self._source(), first):
            self.total = start + batch.num_rows
            skipped = max(0, first - start)
            part = batch.slice(skipped)
            columns = self._columns(part)
            for number, values in enumerate(zip(*columns, strict=True), start + skipped):
                self.place, row = number, self._pick(values)
                if isinstance(row, str):
                    shown = " | ".join(str(value) for value in values)[:SHOWN]
                    yield number + 1, BadRow(self.name, number + 1, offset, row, shown)
                else:
                    yield number + 1, row

    def _source(self) -> Any:
        """The file mapped into memory where it is one: pages that are read are not copied."""
        import pyarrow

        path = getattr(self.stream, "name", None)
        is_file = isinstance(path, str) and Path(path).is_file()
        return pyarrow.memory_map(path) if is_file else self.stream

    def _columns(self, batch: Any) -> list[Sequence[_Value]]:
        """The cells of all columns, those of answers as JSON."""
        keys = [str(at) for at in self.layout.columns.values()]
        answers = _answers(batch, keys)
        return [answers[key] if key in answers else self._column(batch, key) for key in keys]

    def _column(self, batch: Any, key: str) -> Sequence[_Value]:
        """The cells of a column; those that are no UTF-8 as bytes."""
        found, wanted = _find(batch, key), set(self.layout.required)
        names = [name for name, at in self.layout.columns.items() if at == key]
        if found is None:
            if wanted.isdisjoint(names):
                return [None] * int(batch.num_rows)
            known = ", ".join(map(repr, batch.schema.names)) or "none"
            setting = columns_setting(proposed(self.layout.columns, batch.schema.names))
            raise DataError(
                f"{self.name}: wanted the column {key!r}, found {known}. If it has it by another "
                f"name: {setting}"
            )
        found = plain(found)
        if is_text(found.type):
            return _texts(found)
        if not is_readable(found.type):
            raise DataError(
                f"{self.name}: column {key!r}: wanted text, numbers or lists of them, "
                f"found the type {found.type}."
            )
        return [_cell(value, names[0]) for value in _values(found)]

    def _pick(self, values: tuple[_Value, ...]) -> Row | str:
        row = []
        for name, value in zip(self.layout.columns, values, strict=True):
            if isinstance(value, _Problem):
                return value.text
            if value is None and name in self.layout.required:
                return f"column {name!r} is null"
            if isinstance(value, bytes):
                return f"column {name!r}: bad UTF-8"
            if value and "\0" in value:
                return f"column {name!r}: NUL at character {value.index(chr(0))}"
            row.append(as_list(value) if value and name in self.layout.lists else value or "")
        return self.layout.blank(tuple(row)) or tuple(row)


@dataclass(frozen=True)
class ColumnarFormat(NumberedFormat):
    """Columns by their names; made by `parquet_format` and `arrow_format`.

    A row's line is its number from 1, its byte offset that of its row group (Parquet), else 0.

    Attributes:
        kind: The file's format; Arrow is its file format (Feather) or its stream format.
        lists: The columns that are lists where they have a text, too.
    """

    kind: Literal["parquet", "arrow"] = "parquet"
    lists: tuple[str, ...] = ()

    SCAN = _ColumnarScan


def parquet_format(
    columns: Columns = PAIR, *, required: Sequence[str] | None = None, lists: Sequence[str] = ()
) -> ColumnarFormat:
    """Parquet.

    Args:
        columns: Names of columns, or a name for each column of the file; ``translation.en`` is the
            field ``en`` of the column ``translation``.
        required: The columns that a row cannot be without; all by default.
        lists: As for `json_lines_format`.

    Raises:
        UserError: A column is named by a position, or ``lists`` names one that is none.
    """
    named = named_places(columns, required, NAMED, lists)
    return ColumnarFormat(*named, "parquet", tuple(lists))


def arrow_format(
    columns: Columns = PAIR, *, required: Sequence[str] | None = None, lists: Sequence[str] = ()
) -> ColumnarFormat:
    """Arrow IPC: Feather files, and the files in which Hugging Face ``datasets`` keeps its data.

    The arguments, and what is raised, are those of `parquet_format`.
    """
    return ColumnarFormat(*named_places(columns, required, NAMED, lists), "arrow", tuple(lists))


def _answers(batch: Any, keys: Sequence[str]) -> dict[str, list[_Value]]:
    """Both columns of answers as `json_answers` has them; none that are no object or two lists."""
    import pyarrow

    names = [name for name in ANSWERS if name in batch.schema.names]
    if ANSWERS[0] not in names or ANSWERS[1] not in keys:
        return {}
    kinds = [batch.schema.field(name).type for name in names]
    if not (pyarrow.types.is_struct(kinds[0]) or (len(kinds) > 1 and all(map(is_list, kinds)))):
        return {}
    columns: dict[str, list[_Value]] = {name: [] for name in ANSWERS}
    for values in zip(*(_values(batch.column(name)) for name in names), strict=True):
        for name, cell in _answer_cells(dict(zip(names, values, strict=True))).items():
            columns[name].append(cell)
    return columns


def _answer_cells(row: Mapping[str, Any]) -> dict[str, _Value]:
    """The two cells of a row; where one of them is null, the other is as it is."""
    if isinstance(row[ANSWERS[0]], bytes):
        return dict.fromkeys(ANSWERS, _Problem(f"column {ANSWERS[0]!r}: bad UTF-8"))
    found = json_answers(row)
    if isinstance(found, str):
        return dict.fromkeys(ANSWERS, _Problem(found))
    return {name: found[name] if found else _cell(row.get(name), name) for name in ANSWERS}


def _values(column: Any) -> list[Any]:
    """The values of a column; one with a text that is no UTF-8 is bytes."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(cell) for cell in column]


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return b""


def _texts(column: Any) -> list[str | bytes | None]:
    """The texts of a column of texts; those that are no UTF-8 as bytes."""
    import pyarrow

    try:
        texts: list[str | bytes | None] = column.to_pylist()
    except UnicodeDecodeError:
        wide = pyarrow.types.is_large_string(column.type)
        raw = column.view(pyarrow.large_binary() if wide else pyarrow.binary()).to_pylist()
        texts = [_decoded(value) for value in raw]
    return texts


def _cell(value: Any, name: str) -> _Value:
    """A value of a column of other things than texts."""
    if value is None or isinstance(value, bytes):
        return value
    try:
        return cell_of(value)
    except CellError as error:
        return _Problem(f"column {name!r}: {error}")


def _decoded(raw: bytes | None) -> str | bytes | None:
    try:
        return None if raw is None else raw.decode()
    except UnicodeDecodeError:
        return raw


def _find(batch: Any, key: str) -> Any:
    """A column by name, or a field of a column that is a struct; None where there is none."""
    import pyarrow
    import pyarrow.compute

    if key in batch.schema.names:
        return batch.column(batch.schema.names.index(key))
    first, *inner = key.split(".")
    if not inner or first not in batch.schema.names:
        return None
    column = batch.column(batch.schema.names.index(first))
    for name in inner:
        kind = column.type
        if not pyarrow.types.is_struct(kind) or kind.get_field_index(name) < 0:
            return None
        column = pyarrow.compute.struct_field(column, name)
    return column


def _parquet(source: Any, first: int) -> Iterator[tuple[int, int, Any]]:
    """Number of its first row, byte of its row group, and batch after batch from a row on."""
    from pyarrow.parquet import ParquetFile

    number = 0
    with ParquetFile(source) as file:
        for group in range(file.num_row_groups):
            about = file.metadata.row_group(group)
            if number + about.num_rows <= first:
                number += about.num_rows
                continue
            pages = [about.column(i) for i in range(about.num_columns)]
            starts = [p.dictionary_page_offset or p.data_page_offset for p in pages]
            for batch in file.iter_batches(BATCH_ROWS, row_groups=[group]):
                if number + batch.num_rows > first:
                    yield number, min(starts, default=0), batch
                number += batch.num_rows


def _arrow(source: Any, first: int) -> Iterator[tuple[int, int, Any]]:
    import pyarrow

    number = 0
    for batch in _arrow_batches(source, pyarrow):
        if number + batch.num_rows > first:
            yield number, 0, batch
        number += batch.num_rows


def _arrow_batches(source: Any, pyarrow: Any) -> Iterator[Any]:
    try:
        file = pyarrow.ipc.open_file(source)
    except pyarrow.ArrowInvalid:  # the stream format has no magic bytes at its start
        source.seek(0)
        yield from pyarrow.ipc.open_stream(source)
        return
    for number in range(file.num_record_batches):
        yield file.get_batch(number)
