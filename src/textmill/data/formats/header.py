"""Files whose columns have positions, and where a header says that they are."""

import itertools
import json
import re
import shlex
import sys
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from typing import BinaryIO, Literal, TypedDict, TypeVar

from typing_extensions import override

from textmill.data.formats.column_guess import plain_name as plain_name
from textmill.data.formats.column_guess import proposed as proposed
from textmill.data.formats.row_format import LineScan, LinesFormat, Row, RowFormat
from textmill.errors import DataError, UserError

ABSENT = sys.maxsize
"""The position of an optional column that a file does not have."""
_PLAIN = re.compile(r"(?!(?i:true|false|null|yes|no|on|off)\Z)[^\W\d][\w.-]*(?: [\w.-]+)*")
"""What YAML takes as text without quotes, for sure."""


class DelimitedSettings(TypedDict, total=False):
    """The settings of :class:`DelimitedFormat`."""

    separator: str
    header: bool
    extra_columns: Literal["ignore", "error"]
    max_line_bytes: int
    encoding: str


@dataclass(frozen=True)
class DelimitedFormat(LinesFormat):
    """Columns that have a character between them; base of TSV and CSV.

    Attributes:
        columns: Name to its position (from 0), or to its name in the header.
        separator: Between columns; None where the whole line is the one column.
        header: The first line names the columns and is no row.
        extra_columns: What a column beyond the named ones is: nothing, or a bad row.
    """

    separator: str | None = None
    header: bool = False
    extra_columns: Literal["ignore", "error"] = "ignore"

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        for name, at in self.columns.items():
            if isinstance(at, int) and at < 0:
                raise UserError(
                    f"columns: wanted a position from 0 for {name!r}, found {at}. Positions from "
                    "the end are those of CoNLL files, a token in a line: if it is one, say so by "
                    "train_data.format=conll, which valid_data follows."
                )
            if isinstance(at, str) and not self.header:
                raise UserError(
                    f"columns: {name!r} is to be found by the name {at!r}, which needs header=true."
                )

    @property
    @override
    def has_header(self) -> bool:
        return self.header


D = TypeVar("D", bound=DelimitedFormat)


class DelimitedScan(LineScan[D]):
    """A pass over a file of such columns; ``at`` are their positions, none before the header."""

    def __init__(self, stream: BinaryIO, name: str, layout: D) -> None:
        super().__init__(stream, name, layout)
        self.at: list[int] = []
        self.is_strict = layout.extra_columns == "error"
        if not layout.header:
            at = [at for at in layout.columns.values() if isinstance(at, int)]
            self._take_places(at, max(at) + 1)

    def _take_places(self, at: list[int], width: int) -> None:
        """Takes the columns' positions, and how many a line has with the optional ones."""
        named, required = zip(self.layout.columns, at, strict=True), self.layout.required
        self._least = 1 + max((place for name, place in named if name in required), default=-1)
        self.at, self.width = at, width

    def read_header(self, cells: Sequence[str] | str) -> None:
        """Takes the cells of the first line, or what is wrong with it."""
        if isinstance(cells, str):
            raise DataError(f"{self.name}:1: the header cannot be read: {cells}.")
        self.names = cells
        self._take_places(header_places(self.layout, cells, self.name), len(cells))

    def pick(self, cells: Sequence[str]) -> Row | str:
        """The row of a line's cells, or what is wrong with them."""
        count, least, width = len(cells), self._least, self.width
        if count < least or (self.is_strict and count > width):
            wanted = "" if least == width else f"at least {least} of "
            return f"wanted {wanted}{width} column{'s' * (width != 1)}, found {count}"
        row = tuple([cells[at] if at < count else "" for at in self.at])
        return self.layout.problem(row) or row


def header_places(
    layout: RowFormat, header: Sequence[str], file: str, setting: str = "columns"
) -> list[int]:
    """The position of each column of a layout in a file with that header.

    The first columns in their order are those of these names, where the header has the names
    elsewhere; in a header of other names they are the first ones. ``setting`` is what errors say
    the columns by.

    Raises:
        DataError: The header lacks a column, or has it at another position than the layout.

    Example:
        >>> from textmill.data.formats.lines import tsv_format
        >>> layout = tsv_format(("label", "text"), header=True)
        >>> header_places(layout, ["id", "Text", "Label"], "a.tsv")
        [2, 1]
        >>> header_places(layout, ["category", "sentence"], "a.tsv")
        [0, 1]
    """
    places = layout.columns
    named = {name: at for name, at in places.items() if isinstance(at, str)}
    refuse_twice(named, header, file, setting)
    missing = [at for name, at in named.items() if at not in header and name in layout.must_exist]
    if missing:
        raise DataError(
            f"{file}:1: wanted the column{'s' if len(missing) > 1 else ''} "
            f"{', '.join(map(repr, missing))}, found the header {', '.join(map(repr, header))}. "
            f"If it has them by other names: {columns_setting(proposed(named, header), setting)}"
        )
    found = {
        name: at if isinstance(at, int) else header.index(at) if at in header else ABSENT
        for name, at in places.items()
    }
    if named or (wrong := misplaced(places, header, setting)) is None:
        return [*found.values()]
    names = [plain_name(cell) for cell in header]
    is_first = [*places.values()] == [*range(len(places))]
    if not is_first or any(plain_name(name) not in names for name in layout.must_exist):
        raise DataError(f"{file}:1: {wrong}")
    refuse_twice({name: plain_name(name) for name in places}, names, file, setting)
    by_name = (plain_name(name) for name in places)
    return [names.index(name) if name in names else ABSENT for name in by_name]


def refuse_twice(
    columns: Mapping[str, str], header: Sequence[str], file: str, setting: str = "columns"
) -> None:
    """Refuses a header that has the name of a column twice: it says not which is the column.

    Args:
        columns: Each column with its name in the header.
        header: All names.
        file: What errors call the file.
        setting: What says the columns.

    Raises:
        DataError: It has.
    """
    for name, wanted in columns.items():
        found = [at for at, cell in enumerate(header) if cell == wanted]
        if len(found) > 1:
            places = ", ".join(map(str, found))
            others = proposed([c for c in columns if c != name], header)
            at = {cell: place for place, cell in enumerate(header)}
            every = {c: found[0] if c == name else at.get(str(others[c]), "...") for c in columns}
            raise DataError(
                f"{file}:1: wanted one column {wanted!r}, found {len(found)}, at the positions "
                f"{places} (from 0). Say by positions which it is, as "
                f"{columns_setting(every, setting)}"
            )


def misplaced(
    places: Mapping[str, int | str], header: Sequence[str], setting: str = "columns"
) -> str | None:
    """What is wrong where a header has the name of a column at another position; else None.

    Example:
        >>> print(misplaced({"label": 0, "text": 1}, ["text", "category"]))
        wanted 'text' at position 1 (from 0), found 'category' there, and 'text' at 0. Say where \
each column is by its name in the header, as 'columns={label: category, text: text}'
    """
    names = [plain_name(cell) for cell in header]
    for name, at in places.items():
        there = names[at] if isinstance(at, int) and at < len(names) else None
        if isinstance(at, int) and plain_name(name) in names and there != plain_name(name):
            found = "nothing" if there is None else repr(header[at])
            elsewhere = names.index(plain_name(name))
            return (
                f"wanted {name!r} at position {at} (from 0), found {found} there, and "
                f"{header[elsewhere]!r} at {elsewhere}. Say where each column is by its name in "
                f"the header, as {columns_setting(proposed(places, header), setting)}"
            )
    return None


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or with the first number from 2 that makes it another than all there are.

    >>> free_name("score", ["score", "score_2"])
    'score_3'
    """
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in taken)


def columns_setting(places: Mapping[str, int | str], setting: str = "columns") -> str:
    """The setting that says where columns are, as a word for a shell.

    Example:
        >>> print(columns_setting({"label": "stars", "text": "Review: text"}, "train_data.columns"))
        'train_data.columns={label: stars, text: "Review: text"}'
    """
    inner = ", ".join(f"{_flow(name)}: {_flow(at)}" for name, at in places.items())
    return shlex.quote(f"{setting}={{{inner}}}")


def _flow(value: int | str) -> str:
    """A value inside the braces of YAML; quoted where it would be another one without."""
    if isinstance(value, int) or value == "..." or _PLAIN.fullmatch(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)
