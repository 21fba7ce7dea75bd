"""What the top of a file of columns says: whether its names are there, and were said to be."""

import csv
import shlex
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from textmill.data.bad_rows import BadRow
from textmill.data.formats.comma_separated import CsvFormat
from textmill.data.formats.conll import ConllFormat
from textmill.data.formats.header import plain_name
from textmill.data.formats.lines import LineFormat
from textmill.data.formats.row_format import Row, RowFormat

__all__ = ["first_cells", "has_names", "is_header", "other_delimiter"]

WIDEST = 1000
"""Columns of a first line that are looked at."""
TAB = "\t"
DELIMITERS = (";", TAB, "|", ",")
HEAD_BYTES, HEAD_LINES = 1 << 16, 20
"""What is looked at for another delimiter."""
_USUAL = (
    "answer author body category class comment content context date document en fr form gold_label "
    "hypothesis id idx index input intent label labels language lemma message ner ner_tag ner_tags "
    "output passage pos pos_tag premise question rating review score sentence sentence1 sentence2 "
    "sentiment slots source src stars summary tag tags target text text1 text2 tgt title token "
    "tokens topic tweet upos v1 v2 word words xpos"
)
USUAL = frozenset(_USUAL.split())
"""Names of columns in published data; no line of data has nothing but such."""


def first_cells(path: Path, layout: RowFormat) -> Row | None:
    """All cells of the first line, which may be a header, without empty ones at its end.

    Of CoNLL they are the columns of the first token.

    Args:
        path: The file.
        layout: How it is read.

    Returns:
        The cells; None of a format that names its columns itself, and of a line that is no row.
    """
    if isinstance(layout, ConllFormat):
        with path.open("rb") as stream:
            _, row = next(iter(layout.scan(stream, str(path))), (0, None))
        if row is None or isinstance(row, BadRow):
            return None
        return tuple(cell.split(" ")[0] for cell in row)
    if not isinstance(layout, LineFormat | CsvFormat):
        return None
    every: dict[str, int | str] = {str(at): at for at in range(WIDEST)}
    bare = replace(layout, columns=every, required=(), extra_columns="ignore", header=False)
    with path.open("rb") as stream:
        _, row = next(iter(bare.scan(stream, str(path))), (0, None))
    if row is None or isinstance(row, BadRow):
        return None
    width = max((at + 1 for at, cell in enumerate(row) if cell), default=0)
    return row[:width]


def other_delimiter(path: Path, layout: RowFormat, prefix: str = "") -> str | None:
    """What is wrong with a file whose columns another character parts; None where none does.

    Args:
        path: The file.
        layout: How it is read.
        prefix: What stands before the setting's name.
    """
    if not isinstance(layout, LineFormat | CsvFormat) or layout.separator is None:
        return None
    places = [at for name, at in layout.columns.items() if name in layout.required]
    wanted = max((at + 1 for at in places if isinstance(at, int)), default=len({*places}))
    if wanted < 2:
        return None
    with path.open("rb") as stream:
        lines = stream.read(HEAD_BYTES).decode("utf-8", "replace").splitlines()[:HEAD_LINES]
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
            return (
                f"wanted {wanted} columns between {layout.separator!r}, found {min(sizes)}; each "
                f"of the first {len(found)} lines has {found[0]} between {other!r}. If these are "
                f"the columns: {shlex.quote(prefix + word)}"
            )
    return None


def _sizes(lines: Sequence[str], delimiter: str, *, quoted: bool) -> list[int]:
    """How many columns each line has; none where the lines are none of such columns."""
    if not quoted:
        return [line.count(delimiter) + 1 for line in lines if line]
    try:
        return [len(row) for row in csv.reader(lines, delimiter=delimiter, strict=True) if row]
    except csv.Error:
        return []


def has_names(cells: Row, layout: RowFormat) -> bool:
    """Whether a first line has the names of the columns: at their places, or of several anywhere.

    Names that columns usually have are names, too, where all cells of several columns are such.

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


def is_header(row: Row, columns: Row) -> bool:
    """Whether a row is the names of its columns, and so none.

    Example:
        >>> is_header(("Label", "text "), ("label", "text"))
        True
        >>> is_header(("spam", "text"), ("label", "text"))
        False
    """
    return [*map(plain_name, row)] == [*map(plain_name, columns)]
