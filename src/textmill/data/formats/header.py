"""Columns by their positions, and headers that name them.

An error proposes which column of a file may be meant, by the names alone, for a person to judge.
"""

import difflib
import itertools
import json
import re
import shlex
import sys
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple, TypedDict

from typing_extensions import override

from textmill.data.formats.cells import CellError, json_of, list_cell
from textmill.data.formats.row_format import LinesFormat, Row, RowFormat, Scan, encoding_advice
from textmill.errors import DataError, UserError

ABSENT = sys.maxsize
"""The position of an optional column that a file does not have."""
_PLAIN = re.compile(r"(?!(?i:true|false|null|yes|no|on|off)\Z)[^\W\d][\w.-]*(?: [\w.-]+)*")
"""What YAML takes as text without quotes, for sure."""
UNKNOWN = "..."  # where nothing is likely
_LABELS = (
    "category class topic kind intent sentiment queue tag type department gold_label v1 rating "
    "stars kategorie thema klasse abteilung"
)
_TEXTS = (
    "message body content comment review sentence description document tweet sms utterance v2 "
    "question query title subject nachricht beschreibung inhalt kommentar betreff"
)
OTHER_NAMES: Mapping[str, Sequence[str]] = {
    "label": ("labels", *_LABELS.split()),
    "labels": ("label", *_LABELS.split()),
    "text": _TEXTS.split(),
    "score": ("rating", "stars", "value", "similarity"),
}
"""What columns are called elsewhere, the likeliest first."""
_KEY_WORDS = (
    "id ids idx index nr no number key uuid guid date datum day time zeit timestamp created "
    "updated modified"
)
KEY_WORDS = frozenset(_KEY_WORDS.split())
"""A number, a date or an identifier of rows is never proposed: it would seem to work."""
SHOWN_HEADER = 300  # characters of a first line
HEADER_LINES = 20
"""Lines of a file among which its header is: titles, notes and blank lines may be above it."""
NEAR = 0.7  # a mistyped name: ``stras`` is 0.8 of ``stars``, ``text`` 0.6 of ``target``


class DelimitedSettings(TypedDict, total=False):
    """The settings of :class:`DelimitedFormat`."""

    separator: str
    header: bool
    extra_columns: Literal["ignore", "error"]
    max_line_bytes: int
    encoding: str
    lists: tuple[str, ...]


@dataclass(frozen=True)
class DelimitedFormat(LinesFormat):
    """Columns separated by a character; base of TSV and CSV.

    Attributes:
        columns: Name to its position (from 0), or to its name in the header.
        separator: Between columns; None if the whole line is the only column.
        header: A line names the columns: the first, or the first of `HEADER_LINES` that has all of
            their names. It and what is above it are no rows.
        extra_columns: Whether columns beyond the named ones are ignored, or make a bad row.
        lists: The columns whose cells are lists as JSON, or empty.
    """

    separator: str | None = None
    header: bool = False
    extra_columns: Literal["ignore", "error"] = "ignore"
    lists: tuple[str, ...] = ()

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

    def places(self) -> "Places | None":
        """Where the columns are; None if the header says it."""
        if self.header:
            return None
        at = [at for at in self.columns.values() if isinstance(at, int)]
        return self._places(at, max(at) + 1)

    def _places(self, at: list[int], width: int) -> "Places":
        named = zip(self.columns, at, strict=True)
        least = 1 + max((place for name, place in named if name in self.required), default=-1)
        return Places(at, least, width)

    def read_header(self, scan: Scan, line: int, cells: Sequence[str] | str) -> "Places | None":
        """Where the columns are, by the cells of a line or what is wrong with it.

        None if the line is above the header.
        """
        if not isinstance(cells, str) and (not self._names or self._has_names(cells)):
            scan.names, scan.notes.above = cells, len(scan.above)
            return self._places(header_places(self, cells, scan.name, line), len(cells))
        scan.above.append((line, cells))
        if len(scan.above) == HEADER_LINES:
            self.refuse_headerless(scan)
        return None

    def refuse_headerless(self, scan: Scan) -> None:
        """Refuses a file that has lines and no header among the first of them."""
        if not scan.above:
            return
        wide = max(0 if isinstance(cells, str) else len(cells) for _, cells in scan.above)
        line, cells = next(
            (line, cells)
            for line, cells in scan.above
            if isinstance(cells, str) or 2 * len(cells) > wide
        )
        if isinstance(cells, str):
            advice = encoding_advice(scan.name, self)
            problem = f"{scan.name}:{line}: the header cannot be read: {cells}."
            raise DataError(f"{problem} {advice}".strip())
        header_places(self, cells, scan.name, line)

    @property
    def _names(self) -> list[str]:
        return [at for at in self.columns.values() if isinstance(at, str)]

    def _has_names(self, cells: Sequence[str]) -> bool:
        """Whether a line has the names of all columns that a header must have."""
        plain, must = {*map(plain_name, cells)}, self.must_exist
        named = [(name, at) for name, at in self.columns.items() if isinstance(at, str)]
        wanted = [at for name, at in named if name in must] or self._names
        return all(plain_name(at) in plain for at in wanted)

    def pick(self, cells: Sequence[str], places: "Places") -> Row | str:
        at, least, width = places
        count = len(cells)
        if count < least or (count > width and self.extra_columns == "error"):
            wanted = "" if least == width else f"at least {least} of "
            return f"wanted {wanted}{width} column{'s' * (width != 1)}, found {count}"
        row = tuple([cells[place] if place < count else "" for place in at])
        if self.lists:
            try:
                row = tuple(map(self._listed, self.columns, row))
            except ValueError as error:  # a CellError, too
                return str(error)
        return self.problem(row) or row

    def _listed(self, name: str, cell: str) -> str:
        """The cell as a list, if the column has such."""
        if name not in self.lists or not cell.strip():
            return cell
        try:
            found = json_of(cell)
            return list_cell(found if isinstance(found, list) else [found])
        except ValueError as error:
            raise CellError(f"column {name!r}: wanted a list as JSON: {error}") from None


class Places(NamedTuple):
    """Where the columns of a file are."""

    at: list[int]
    """The position of each."""
    least: int
    """How many columns a line has at least."""
    width: int
    """How many it has with those that may be missing."""


def header_places(layout: RowFormat, header: Sequence[str], file: str, line: int = 1) -> list[int]:
    """The position of each column of a layout in a file with that header; errors name both.

    Names are compared without their spaces and case; that of a setting, first as it is written.
    """
    columns = dict(layout.columns)
    named = {name: at for name, at in columns.items() if isinstance(at, str)}
    places = {n: _places_of(at, header, exactly=n != at) for n, at in named.items()}
    missing = [named[name] for name in named if name in layout.must_exist and not places[name]]
    if missing:
        are_listed = all(name == at for name, at in columns.items())
        is_row = f" If that is a row: {layout.prefix}header=false." if are_listed else ""
        raise DataError(
            f"{file}:{line}: wanted a header with {', '.join(map(repr, missing))}, found "
            f"{shown_cells(header)}.{is_row} If it is a header of other names: "
            f"{columns_setting(proposed(named, header), layout.prefix)}"
        )
    for name, several in places.items():
        if len(several) > 1:
            first: dict[str, int | str] = {n: p[0] if p else UNKNOWN for n, p in places.items()}
            raise DataError(
                f"{file}:{line}: wanted one column {named[name]!r}, found {len(several)}, at the "
                f"positions {', '.join(map(str, several))} (from 0). Say by positions which it is, "
                f"as {columns_setting(columns | first, layout.prefix)}"
            )
    plain = [*map(plain_name, header)]
    for name, at in columns.items():
        there = plain[at] if isinstance(at, int) and at < len(plain) else None
        if isinstance(at, int) and plain_name(name) in plain and there != plain_name(name):
            found = "nothing" if there is None else repr(header[at])
            elsewhere = plain.index(plain_name(name))
            raise DataError(
                f"{file}:{line}: wanted {name!r} at position {at} (from 0), found {found} there, "
                f"and {header[elsewhere]!r} at {elsewhere}. Say where each column is by its name "
                f"in the header, as {columns_setting(proposed(columns, header), layout.prefix)}"
            )
    return [
        at if isinstance(at, int) else (places[name] or [ABSENT])[0] for name, at in columns.items()
    ]


def _places_of(name: str, header: Sequence[str], *, exactly: bool) -> list[int]:
    exact = [at for at, cell in enumerate(header) if exactly and cell == name]
    return exact or [at for at, cell in enumerate(header) if plain_name(cell) == plain_name(name)]


def free_name(name: str, taken: Container[str]) -> str:
    """The name, or if it is taken, with the first number from 2 that is free."""
    numbered = (f"{name}_{number}" for number in itertools.count(2))
    return next(each for each in itertools.chain([name], numbered) if each not in taken)


def columns_setting(places: Mapping[str, int | str], prefix: str = "") -> str:
    """The setting that says where columns are, as a word for a shell."""
    inner = ", ".join(f"{yaml_word(name)}: {yaml_word(at)}" for name, at in places.items())
    return shlex.quote(f"{prefix}columns={{{inner}}}")


def shown_cells(cells: Sequence[str]) -> str:
    """A header in an error."""
    return ", ".join(map(repr, cells))[:SHOWN_HEADER]


def yaml_word(value: int | str) -> str:
    """A value inside the braces of YAML; quoted if YAML would read it as something else."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int) or value == "..." or _PLAIN.fullmatch(value):
        return str(value)
    return json.dumps(value, ensure_ascii=False)


def plain_name(name: str) -> str:
    """A name for comparing: without spaces around it, in lower case."""
    return name.strip().casefold()


def words_of(name: str) -> list[str]:
    """The words of a column's name, in lower case.

    Example:
        >>> words_of("Ticket-ID "), words_of("createdAt"), words_of("gold_label")
        (['ticket', 'id'], ['created', 'at'], ['gold', 'label'])
    """
    return [word.casefold() for word in re.findall(r"[A-Z]*[^\W_A-Z]+|[A-Z]+", name)]


def proposed(
    columns: Iterable[str] | Mapping[str, int | str], names: Sequence[str]
) -> dict[str, int | str]:
    """The name in a file that is likely meant by each column, or ``...`` if none is.

    Example:
        >>> proposed(["label", "text"], ["ticket_id", "created", "message", "queue"])
        {'label': 'queue', 'text': 'message'}
        >>> proposed({"text": "text", "stars": "stras"}, ["id", "stars", "text"])
        {'text': 'text', 'stars': 'stars'}
    """
    left = {plain_name(name): name for name in names}
    at = {name: columns[name] if isinstance(columns, Mapping) else name for name in columns}
    found = dict[str, str]()
    for name, wanted in at.items():
        like = next((n for n in map(plain_name, (str(wanted), name)) if n in left), None)
        if like is not None:
            found[name] = left.pop(like)
    for name in (name for name in at if name not in found):
        wanted = at[name]
        near = difflib.get_close_matches(
            plain_name(wanted if isinstance(wanted, str) else name), left, n=1, cutoff=NEAR
        )
        near = near or [other for other in OTHER_NAMES.get(name, ()) if other in left]
        if near:
            found[name] = left.pop(near[0])
    left = {plain: name for plain, name in left.items() if not KEY_WORDS & {*words_of(name)}}
    missing = [name for name in at if name not in found]
    if len(names) == len(at) and len(left) == len(missing):
        found |= dict(zip(missing, left.values(), strict=True))
    return {name: found.get(name, UNKNOWN) for name in at}
