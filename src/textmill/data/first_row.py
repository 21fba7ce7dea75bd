"""The top of a file of columns: whether it has a header, and whether the settings say so."""

import csv
import itertools
import re
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textmill.data.bad_rows import BadRow
from textmill.data.formats.advice import file_encoding
from textmill.data.formats.comma_separated import CsvFormat
from textmill.data.formats.conll import ConllFormat
from textmill.data.formats.header import columns_setting, plain_name, proposed
from textmill.data.formats.lines import LineFormat
from textmill.data.formats.row_format import LinesFormat, Row, RowFormat

WIDEST = 1000
"""Columns of a first line that are looked at."""
TAB = "\t"
DELIMITERS = (";", TAB, "|", ",")
HEAD_BYTES, HEAD_LINES = 1 << 16, 20
"""What is looked at for another delimiter."""
MANY_LINES = 500
"""What is looked at for the places of columns."""
SHOWN = 300  # characters of a header
FEW_ROWS = 10
_DIGIT = re.compile(r"\d")
_NAME = re.compile(r"[^\W\d][\w.-]*(?: [\w.-]+){0,3}")
_USUAL = (
    "answer author body category class comment content context date document en fr form gold_label "
    "hypothesis id idx index input intent label labels language lemma message ner ner_tag ner_tags "
    "output passage pos pos_tag premise question rating review score sentence sentence1 sentence2 "
    "sentiment slots source src stars summary tag tags target text text1 text2 tgt title token "
    "tokens topic tweet upos v1 v2 word words xpos"
)
USUAL = frozenset(_USUAL.split())
"""Names of columns in published data; no line of data has nothing but such."""


def first_rows(path: Path, layout: RowFormat, count: int = HEAD_LINES) -> list[Row]:
    """The cells of the first rows, up to the first bad one; the first may be a header.

    Of CoNLL they are the columns of the first tokens of sentences.

    Args:
        path: The file.
        layout: How it is read.
        count: How many lines.

    Returns:
        The rows; none of a format that names its columns itself.
    """
    if isinstance(layout, LineFormat | CsvFormat):
        every: dict[str, int | str] = {str(at): at for at in range(WIDEST)}
        bare = replace(layout, columns=every, required=(), header=False)
        layout = replace(bare, extra_columns="ignore", check=None)
    elif not isinstance(layout, ConllFormat):
        return []
    found = list[Row]()
    with path.open("rb") as stream:
        for _, row in itertools.islice(layout.scan(stream, str(path)), count):
            if isinstance(row, BadRow):
                break
            is_conll = isinstance(layout, ConllFormat)
            found.append(tuple(cell.split(" ")[0] for cell in row) if is_conll else row)
    return found


def first_cells(path: Path, layout: RowFormat) -> Row | None:
    """The first of `first_rows`, without empty cells at its end; None for an empty file."""
    row = next(iter(first_rows(path, layout, 1)), None)
    if row is None or isinstance(layout, ConllFormat):
        return row
    width = max((at + 1 for at, cell in enumerate(row) if cell), default=0)
    return row[:width]


def other_delimiter(path: Path, layout: RowFormat, prefix: str = "") -> str | None:
    """What is wrong with a file whose columns another character parts; None where none does.

    It ends in the settings that read the file as it is: its delimiter, and those of `as_it_is`.

    Args:
        path: The file.
        layout: How it is read.
        prefix: What stands before a setting's name.
    """
    if not isinstance(layout, LineFormat | CsvFormat) or layout.separator is None:
        return None
    wanted = _wanted(path, layout)
    if wanted < 2:
        return None
    with path.open("rb") as stream:
        lines = stream.read(HEAD_BYTES).decode(layout.encoding, "replace").splitlines()[:HEAD_LINES]
    is_csv = isinstance(layout, CsvFormat)
    sizes = _sizes(lines, layout.separator, quoted=is_csv)
    if not sizes or (min(sizes) >= wanted and (len({*sizes}) == 1 or not is_csv)):
        return None
    for other in DELIMITERS:
        if other != TAB and all(f"{other} " in line for line in lines):
            continue  # a mark of sentences
        found = _sizes(lines, other, quoted=is_csv or other == ",")
        if found and len({*found}) == 1 and found[0] >= wanted and other != layout.separator:
            as_csv = not is_csv and other == ","
            word = "format=csv" if as_csv else f"delimiter={'tab' if other == TAB else other}"
            right = replace(layout, separator=other)
            words = [shlex.quote(prefix + word), *as_it_is(path, right, prefix)]
            right = replace(right, encoding=file_encoding(path, right) or right.encoding)
            named = right.header or may_be_names(*_head(path, right))
            names = f" ({', '.join(map(repr, first_cells(path, right) or ()))[:SHOWN]})"
            return (
                f"wanted {wanted} columns ({', '.join(layout.required)}) between "
                f"{layout.separator!r}, found {min(sizes)}; each of the first {len(found)} lines "
                f"has {found[0]} between {other!r}"
                f"{names if named else ''}. If these are the columns: {' '.join(words)}"
            )
    return None


def _wanted(path: Path, layout: LineFormat | CsvFormat) -> int:
    """How many columns a line of a file must have; of columns by name 2 where its header has none.

    A name that the header has shows that the delimiter is right.
    """
    at = {layout.columns[name] for name in layout.required}
    places = [place for place in at if isinstance(place, int)]
    if len(places) == len(at):
        return max((place + 1 for place in places), default=len(at))
    names = first_cells(path, layout) or ()
    return 0 if len(names) > 1 or {*names} & at else 2


def as_it_is(path: Path, layout: RowFormat, prefix: str = "") -> list[str]:
    """The settings that a file needs beside its delimiter to be read, as words for a shell.

    Args:
        path: The file.
        layout: How it is read; its delimiter is right.
        prefix: What stands before a setting's name.

    Returns:
        ``encoding`` for a file that is not UTF-8, ``header=true`` for one with names that
        ``layout`` takes for a row, and ``columns`` if these are other names than it asks for.
    """
    words = list[str]()
    if (likely := file_encoding(path, layout)) is not None and isinstance(layout, LinesFormat):
        layout = replace(layout, encoding=likely)
        words.append(f"{prefix}encoding={likely}")
    cells, rows, _ = _head(path, layout)
    columns, required = layout.columns, layout.required
    if not (layout.has_header or may_be_names(cells, rows, layout)):
        return words
    words += [] if layout.has_header else [f"{prefix}header=true"]
    names = {*map(plain_name, cells)}
    wanted = {columns[name] for name in required if isinstance(columns[name], str)}
    if not wanted:
        wanted = {*required}
    if not {plain_name(str(name)) for name in wanted} <= names:
        words.append(columns_setting(proposed(columns, cells, rows), f"{prefix}columns"))
    return words


def _head(path: Path, layout: RowFormat) -> tuple[Row, list[Row], RowFormat]:
    """The first line, some that follow it, and the layout: what `may_be_names` looks at."""
    cells, rows = first_cells(path, layout) or (), first_rows(path, layout)[1:]
    return cells, [row[: len(cells)] for row in rows], layout


def places_by_cells(path: Path, layout: RowFormat, setting: str) -> str:
    """The setting with the positions that the columns of a file without a header have, likely.

    Empty where nothing is likely.
    """
    rows = first_rows(path, layout, MANY_LINES)
    width = max((at + 1 for row in rows for at, cell in enumerate(row) if cell), default=0)
    names = [f"column {at}" for at in range(width)]
    guess = proposed([*layout.required], names, [row[:width] for row in rows])
    if not {*guess.values()} <= {*names} or not rows:
        return ""
    return columns_setting({name: names.index(str(at)) for name, at in guess.items()}, setting)


def _sizes(lines: Sequence[str], delimiter: str, *, quoted: bool) -> list[int]:
    """How many columns each line has; none where the lines are none of such columns."""
    if not quoted:
        return [line.count(delimiter) + 1 for line in lines if line]
    try:
        return [len(row) for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return []


def has_names(cells: Row, layout: RowFormat) -> bool:
    """Whether a first line certainly is a header: it names the columns, in their places or others.

    A line of several cells is a header, too, if each is a name that columns usually have.

    Example:
        >>> from textmill.data.formats.lines import tsv_format
        >>> layout = tsv_format(("label", "text"))
        >>> has_names(("text", "Label", "id"), layout), has_names(("spam", "text"), layout)
        (True, False)
        >>> has_names(("Category", "Message"), layout), has_names(("class", "it is"), layout)
        (True, False)
    """
    names = [plain_name(cell) for cell in cells]
    if isinstance(layout, ConllFormat):
        return len(names) > 1 and USUAL.issuperset(names)
    places = [at for at in layout.columns.values() if isinstance(at, int)]
    if is_header(tuple(cells[at] if at < len(cells) else "" for at in places), (*layout.columns,)):
        return True
    if len(names) > 1 and len({*names}) == len(names) and USUAL.issuperset(names):
        return True
    return len(layout.required) > 1 and {*map(plain_name, layout.required)} <= {*names}


def may_be_names(cells: Row, rows: Sequence[Row], layout: RowFormat) -> bool:
    """Whether a first line is likely a header: `has_names`, or words over a column of numbers.

    A first row may look like that, too (``bot`` over ``user1``, ``NA`` over scores), so this is a
    reason to propose ``header=true``, and not to refuse a file.

    Args:
        cells: The first line.
        rows: Some of the lines after it; fewer than 10 show nothing.
        layout: How they are read.

    Example:
        >>> from textmill.data.formats.lines import tsv_format
        >>> rows = [("T1", "Hi."), ("T2", "Win!")] * 5
        >>> may_be_names(("Ticket", "Body text"), rows, tsv_format(("label", "text")))
        True
    """
    if has_names(cells, layout):
        return True
    names = [plain_name(cell) for cell in cells]
    return (
        len(names) > 1
        and len({*names}) == len(names)
        and all(map(_NAME.fullmatch, names))
        and _are_over_numbers(cells, rows)
    )


def _are_over_numbers(cells: Row, rows: Sequence[Row]) -> bool:
    """Whether a cell without a digit is above a column whose cells are single words with digits."""
    columns = [*zip(*rows, strict=False)] if len(rows) >= FEW_ROWS else []
    return any(
        not _DIGIT.search(cell)
        and all(" " not in other and _DIGIT.search(other) for other in column)
        for cell, column in zip(cells, columns, strict=False)
    )


def is_header(row: Row, columns: Row) -> bool:
    """Whether a row is the names of its columns, and so none.

    Example:
        >>> is_header(("Label", "text "), ("label", "text"))
        True
        >>> is_header(("spam", "text"), ("label", "text"))
        False
    """
    return [*map(plain_name, row)] == [*map(plain_name, columns)]
