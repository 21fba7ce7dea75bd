"""Formats whose columns have names: JSON lines (one object a line), Parquet and Arrow."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from typing_extensions import override

from textmill.data.formats.cells import KINDS, CellError, as_list, cell_of, json_answers, json_of
from textmill.data.formats.row_format import (
    PAIR,
    Columns,
    Found,
    LinesFormat,
    RawLine,
    Row,
    RowFormat,
    Scan,
)
from textmill.data.line_blocks import MAX_LINE_BYTES
from textmill.errors import UserError
from textmill.text.encodings import UTF8


@dataclass(frozen=True)
class JsonLinesFormat(LinesFormat):
    """Objects of which some keys are columns; made by `json_lines_format`.

    Attributes:
        lists: The columns that are lists where they have a text, too.
    """

    lists: tuple[str, ...] = ()

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        for line in self.lines(scan):
            scan.place, scan.record = line.place, None
            row = self._row(line, scan)
            yield line.number, line.bad(scan.name, row) if isinstance(row, str) else row

    def _row(self, line: RawLine, scan: Scan) -> Row | str:
        text, problem = line.text()
        if problem is not None and text:
            text = line.raw.decode(line.encoding, "replace")  # an escape is not JSON
        elif problem is not None:
            return problem
        if not text.strip():
            return "the line is blank"
        try:
            found = json_of(text)
        except ValueError as error:  # also of a number of more than 4,300 digits
            return problem or str(error)
        scan.record = found if isinstance(found, dict | str) else None
        if problem is not None:
            return problem
        if not isinstance(found, dict):
            return f"wanted an object, found {KINDS[type(found)]}"
        return pick_row(found, self)


def json_lines_format(
    columns: Columns = PAIR,
    *,
    required: Sequence[str] | None = None,
    max_line_bytes: int = MAX_LINE_BYTES,
    lists: Sequence[str] = (),
    encoding: str = UTF8,
) -> JsonLinesFormat:
    """JSON lines.

    Args:
        columns: Names of keys, or a name for each key; ``translation.en`` is the key ``en`` of the
            object ``translation`` where there is no key of that whole name, and ``summaries.0`` the
            first of the list ``summaries``.
        required: The columns that a row cannot be without; all by default.
        max_line_bytes: The longest line that is read, in bytes.
        lists: Columns that are lists; a text there is a list of one.
        encoding: That of the file.
    """
    named = named_places(columns, required, "JSON lines")
    return JsonLinesFormat(*named, max_line_bytes, tuple(lists), encoding=encoding)


NAMED = "columns of Parquet and Arrow files"


@dataclass(frozen=True)
class ColumnarFormat(RowFormat):
    """Columns by their names; made by `parquet_format` and `arrow_format`.

    A row's line is its number, from 1.

    Attributes:
        kind: The file's format; Arrow is its file format (Feather) or its stream format.
        lists: The columns that are lists where they have a text, too.
    """

    kind: Literal["parquet", "arrow"] = "parquet"
    lists: tuple[str, ...] = ()

    @override
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        from textmill.data.formats.arrow_files import columnar_rows  # pyarrow takes .1 s

        return columnar_rows(scan, self)


def parquet_format(
    columns: Columns = PAIR, *, required: Sequence[str] | None = None, lists: Sequence[str] = ()
) -> ColumnarFormat:
    """Parquet.

    Args:
        columns: Names of columns, or a name for each column of the file; ``translation.en`` is the
            field ``en`` of the column ``translation``.
        required: The columns that a row cannot be without; all by default.
        lists: As for `json_lines_format`.
    """
    named = named_places(columns, required, NAMED)
    return ColumnarFormat(*named, "parquet", tuple(lists))


def arrow_format(
    columns: Columns = PAIR, *, required: Sequence[str] | None = None, lists: Sequence[str] = ()
) -> ColumnarFormat:
    """Arrow IPC: Feather files, and the files in which Hugging Face ``datasets`` keeps its data.

    The arguments are those of `parquet_format`.
    """
    return ColumnarFormat(*named_places(columns, required, NAMED), "arrow", tuple(lists))


def named_places(
    columns: Columns, required: Sequence[str] | None, what: str
) -> tuple[dict[str, int | str], tuple[str, ...]]:
    """Columns by the name they have in the file, and those that a row cannot be without."""
    places: dict[str, int | str] = {}
    places.update(columns if isinstance(columns, Mapping) else {name: name for name in columns})
    for name, at in places.items():
        if not isinstance(at, str):
            raise UserError(
                f"columns: {what} have names, no positions; wanted the name of {name!r} in the "
                f"file, found {at}."
            )
    return places, tuple(places if required is None else required)


def pick_row(found: Mapping[str, Any], layout: JsonLinesFormat) -> Row | str:
    """The columns of an object, or what is wrong with it; each is what `cell_of` makes of it.

    A text in one of ``layout.lists`` is a list of one; :func:`json_answers` are written as JSON.
    """
    row = list[str]()
    answers = json_answers(found, layout.columns.values())
    if isinstance(answers, str):
        return answers
    for name, key in layout.columns.items():
        value: Any = answers.get(str(key)) or value_at(found, str(key))
        if (value is None or value is NO_VALUE) and name not in layout.required:
            value = ""
        if value is NO_VALUE:
            return no_key(found, str(key))
        try:
            cell = cell_of(value)
        except CellError as error:
            return f"{key!r}: {error}"
        row.append(as_list(cell) if name in layout.lists and key not in answers else cell)
    return layout.problem(tuple(row)) or tuple(row)


NO_VALUE = object()
"""What is at a key that is not there; ``null`` is a value."""


def value_at(found: Any, key: str) -> Any:
    """What is at the key, or at a path of keys and places in lists; else :data:`NO_VALUE`."""
    first, _, rest = key.partition(".")
    if isinstance(found, list):
        inner = found[int(first)] if first.isdecimal() and int(first) < len(found) else NO_VALUE
        return value_at(inner, rest) if rest else inner
    if not isinstance(found, Mapping):
        return None if found is None else NO_VALUE
    if key in found or not rest:
        return found.get(key, NO_VALUE)
    return value_at(found.get(first, NO_VALUE), rest)


def no_key(found: Mapping[str, Any], key: str) -> str:
    """What is wrong with an object without a key that it must have."""
    return f"no key {key!r}; the keys are {', '.join(map(repr, found)) or 'none'}"[:300]


def first_keys(path: Path) -> list[str]:
    """The keys of the first line of JSON; none where it is no object."""
    with path.open("rb") as stream:
        try:
            found = json_of(stream.readline(MAX_LINE_BYTES).decode("utf-8-sig"))
        except ValueError:
            return []
    return [*found] if isinstance(found, dict) else []
