"""Parquet and Arrow files, mapped into memory and read batch by batch."""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pyarrow
import pyarrow.compute
from pyarrow.parquet import ParquetFile, read_metadata, read_schema

from textmill.data.bad_rows import BadRow
from textmill.data.formats.cells import ANSWERS, CellError, as_list, cell_of, json_answers
from textmill.data.formats.header import columns_setting, proposed
from textmill.data.formats.row_format import Found, Row, Scan
from textmill.errors import DataError

BATCH_ROWS = 8192
SHOWN = 80  # characters of a bad row

_Value = str | bytes | None | CellError
"""The bytes of a text that is not UTF-8, if they are known; the reason if a value is no cell."""


def columnar_rows(scan: Scan, layout: Any) -> Iterator[Found]:
    """The rows of a file, as its ``layout``, a `ColumnarFormat`, has them."""
    try:
        if not scan.stream.seekable():
            raise DataError(
                f"{scan.name}: a {layout.kind} file cannot be read from a pipe. Name the file."
            )
        scan.sha256 = hashlib.file_digest(cast("Any", scan.stream), "sha256").hexdigest()
        scan.stream.seek(0)
    except OSError as error:
        raise DataError(f"{scan.name}: cannot be read: {error.strerror}.") from error
    path = getattr(scan.stream, "name", None)
    # Mapped into memory where it is a file: pages that are read are not copied.
    is_file = isinstance(path, str) and Path(path).is_file()
    number = 0
    with _arrow_errors(scan.name, layout.kind):
        source = pyarrow.memory_map(path) if is_file else scan.stream
        for batch in _read(source, layout.kind):
            keys = [str(at) for at in layout.columns.values()]
            answers = _answers(batch, keys)
            columns = [
                answers[key] if key in answers else _column(batch, key, scan.name, layout)
                for key in keys
            ]
            for values in zip(*columns, strict=True):
                scan.place, number, row = number, number + 1, _pick(values, layout)
                if isinstance(row, str):
                    shown = " | ".join(str(value) for value in values)[:SHOWN]
                    yield number, BadRow(scan.name, number, row, shown)
                else:
                    yield number, row


def _column(batch: Any, key: str, name: str, layout: Any) -> Sequence[_Value]:
    """The cells of a column; texts that are not UTF-8 as bytes."""
    found, wanted = _find(batch, key), layout.must_exist
    names = [column for column, at in layout.columns.items() if at == key]
    if found is None:
        if wanted.isdisjoint(names):
            return [None] * int(batch.num_rows)
        known = ", ".join(map(repr, batch.schema.names)) or "none"
        setting = columns_setting(proposed(layout.columns, batch.schema.names), layout.prefix)
        raise DataError(
            f"{name}: wanted the column {key!r}, found {known}. If it has it by another "
            f"name: {setting}"
        )
    found = plain(found)
    if is_text(found.type):
        return _values(found)
    if not is_readable(found.type):
        raise DataError(
            f"{name}: column {key!r}: wanted text, numbers or lists of them, "
            f"found the type {found.type}."
        )
    return [_cell(value, names[0]) for value in _values(found)]


def _pick(values: tuple[_Value, ...], layout: Any) -> Row | str:
    row = []
    for name, value in zip(layout.columns, values, strict=True):
        if isinstance(value, CellError):
            return str(value)
        if value is None and name in layout.required:
            return f"column {name!r} is null"
        if isinstance(value, bytes):
            return f"column {name!r}: bad UTF-8"
        if value and "\0" in value:
            return f"column {name!r}: NUL at character {value.index(chr(0))}"
        row.append(as_list(value) if value and name in layout.lists else value or "")
    return layout.problem(tuple(row)) or tuple(row)


def _answers(batch: Any, keys: Sequence[str]) -> dict[str, list[_Value]]:
    """Both columns of answers by `json_answers`; empty unless they are objects or two lists."""
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
    """The two cells of a row; if one is null, the other stays as it is."""
    if isinstance(row[ANSWERS[0]], bytes):
        return dict.fromkeys(ANSWERS, CellError(f"column {ANSWERS[0]!r}: bad UTF-8"))
    found = json_answers(row)
    if isinstance(found, str):
        return dict.fromkeys(ANSWERS, CellError(found))
    return {name: found[name] if found else _cell(row.get(name), name) for name in ANSWERS}


def _values(column: Any) -> list[Any]:
    """The values of a column; one with a text that is not UTF-8 is ``b""``."""
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError:
        return [_value(cell) for cell in column]


def _value(cell: Any) -> Any:
    try:
        return cell.as_py()
    except UnicodeDecodeError:
        return b""


def _cell(value: Any, name: str) -> _Value:
    """A cell of a column whose type is not text."""
    if value is None or isinstance(value, bytes):
        return value
    try:
        return cell_of(value)
    except CellError as error:
        return CellError(f"column {name!r}: {error}")


def _find(batch: Any, key: str) -> Any:
    """A column by name, or a field of a column that is a struct; None where there is none."""
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


@contextmanager
def _arrow_errors(name: str, kind: str) -> Iterator[None]:
    """Turns errors of Arrow into a DataError that names the file."""
    try:
        yield
    except (pyarrow.ArrowException, OSError) as error:
        raise DataError(
            f"{name}: no {kind} file that can be read: {str(error).strip().splitlines()[0]:.300}"
        ) from error


def record_batches(path: str | Path, kind: str) -> Iterator[pyarrow.RecordBatch]:
    """All columns of a file as they are in it, batch by batch.

    The first batch is empty: a file without rows has columns, too.
    """
    with _arrow_errors(str(path), kind), pyarrow.memory_map(str(path)) as source:
        schema = _schema(source, kind)
        yield pyarrow.record_batch([pyarrow.array([], each.type) for each in schema], schema)
        yield from _read(source, kind)


def num_rows(path: str | Path, kind: str) -> int | None:
    """How many rows a file says that it has; None of Arrow, which does not say."""
    if kind == "parquet":
        with suppress(pyarrow.ArrowException, OSError):
            return int(read_metadata(path).num_rows)
    return None


def _schema(source: Any, kind: str) -> Any:
    if kind == "parquet":
        return read_schema(source)
    try:
        return pyarrow.ipc.open_file(source).schema
    except pyarrow.ArrowInvalid:
        source.seek(0)
        schema = pyarrow.ipc.open_stream(source).schema
        source.seek(0)
        return schema


def _read(source: Any, kind: str) -> Iterator[Any]:
    if kind == "parquet":
        with ParquetFile(source) as file:
            yield from file.iter_batches(BATCH_ROWS)
        return
    try:
        opened = pyarrow.ipc.open_file(source)
    except pyarrow.ArrowInvalid:  # the stream format has no magic bytes at its start
        source.seek(0)
        yield from pyarrow.ipc.open_stream(source)
    else:
        yield from map(opened.get_batch, range(opened.num_record_batches))


def is_text(kind: Any) -> bool:
    """Whether a column has texts, or nothing but nulls."""
    kinds = pyarrow.types
    return bool(kinds.is_string(kind) or kinds.is_large_string(kind) or kinds.is_null(kind))


def is_readable(kind: Any) -> bool:
    """Whether its values are texts, numbers, booleans, or lists of these."""
    kinds, inner = pyarrow.types, kind.value_type if is_list(kind) else kind
    if kinds.is_dictionary(inner):
        inner = inner.value_type
    return bool(
        is_text(inner)
        or kinds.is_string_view(inner)
        or kinds.is_integer(inner)
        or kinds.is_floating(inner)
        or kinds.is_boolean(inner)
    )


def plain(column: Any) -> Any:
    """A column without dictionary and views; numbers of less than 64 bits as they are written.

    So 0.1 of 32 bits is the 0.1 of a TSV, not 0.10000000149011612.
    """
    if pyarrow.types.is_dictionary(column.type):
        known = _without_views(column.dictionary)
        column = pyarrow.DictionaryArray.from_arrays(column.indices, known).dictionary_decode()
    column = _without_views(column)
    listed = is_list(column.type)
    inner = column.type.value_type if listed else column.type
    text, wide = pyarrow.string(), pyarrow.float64()
    if pyarrow.types.is_float16(inner):  # which no pyarrow writes as text
        single = pyarrow.float32()
        column, inner = column.cast(pyarrow.list_(single) if listed else single), single
    if not pyarrow.types.is_float32(inner):
        return column
    if listed:
        text, wide = pyarrow.list_(text), pyarrow.list_(wide)
    return column.cast(text).cast(wide)


def is_list(kind: Any) -> bool:
    """Whether its values are lists, of one length or not."""
    kinds = pyarrow.types
    return bool(kinds.is_list(kind) or kinds.is_large_list(kind) or kinds.is_fixed_size_list(kind))


def _without_views(texts: Any) -> Any:
    """Texts laid out as string_view, as Polars writes them, in the layout of all others."""
    is_view = pyarrow.types.is_string_view(texts.type)
    return texts.cast(pyarrow.large_string()) if is_view else texts
