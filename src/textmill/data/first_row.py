"""The first line of a file of columns: whether it is a header; advice on encodings."""

import itertools
from collections.abc import Collection, Sequence
from dataclasses import replace
from pathlib import Path

from textmill.data.bad_rows import BadRow
from textmill.data.formats.conll import ConllFormat
from textmill.data.formats.header import DelimitedFormat, plain_name
from textmill.data.formats.row_format import LinesFormat, Row, RowFormat, encoding_advice
from textmill.text.encodings import HEAD_BYTES, UTF8, is_undecodable, is_utf8

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
    """All cells of the header, or of the first line, which may be one; of CoNLL the first token's.

    None if the file is empty, the line cannot be read, or the format names its columns itself or
    has none.
    """
    if isinstance(layout, DelimitedFormat) and layout.separator is not None:
        if layout.has_header:
            with path.open("rb") as stream:
                scan = layout.scan(stream, str(path))
                is_empty = next(iter(scan), None) is None and not scan.names
                return None if is_empty else _filled(scan.names)
        layout = replace(layout, columns={"": 0}, required=(), header=False, check=None)
        layout = replace(layout, extra_columns="ignore")
    elif not isinstance(layout, ConllFormat):
        return None
    with path.open("rb") as stream:
        scan = layout.scan(stream, str(path))
        for _, row in itertools.islice(scan, 1):
            if isinstance(row, BadRow):
                return None
            if isinstance(layout, ConllFormat):
                return tuple(cell.split(" ")[0] for cell in row)
            return _filled([*map(str, scan.record or ())])
    return None


def _filled(cells: Sequence[str]) -> Row:
    """Cells without the empty ones at their end."""
    count = max((n for n, cell in enumerate(cells, 1) if cell), default=0)
    return tuple(cells[:count])


def has_names(cells: Row, layout: RowFormat) -> bool:
    """Whether a first line certainly is a header: it names the columns, in their places or others.

    A line of several cells is a header, too, if each is a name that columns usually have.
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
    """Whether a row has the names of its columns."""
    return [*map(plain_name, row)] == [*map(plain_name, columns)]


def advice_on(bad_rows: Sequence[BadRow], layout: RowFormat, may_lack: Collection[str] = ()) -> str:
    """The setting with which most of the bad rows can be read; empty if there is none.

    It is known of rows that are not UTF-8, and of empty cells in columns that ``may_lack`` them.
    """
    undecodable = [row for row in bad_rows if is_undecodable(row.reason)]
    if 2 * len(undecodable) > len(bad_rows):
        return encoding_advice(undecodable[0].file, layout)
    reasons = {f"column {name!r} is empty": name for name in may_lack}
    empty = {reasons[row.reason] for row in bad_rows if row.reason in reasons}
    if not empty or any(row.reason not in reasons for row in bad_rows):
        return ""
    before = [name for name in layout.columns if name not in layout.must_exist]
    names = ",".join([*before, *sorted(empty)])
    return (
        f"If an empty cell is a row that has none of the labels: {layout.prefix}optional=[{names}]"
    )


def utf8_warning(path: Path, layout: RowFormat) -> str:
    """A warning of a file that is UTF-8 and is read in another encoding; else empty.

    Each character beyond ASCII would be read as two or three others.
    """
    if not isinstance(layout, LinesFormat) or layout.encoding == UTF8:
        return ""
    with path.open("rb") as file:
        if not is_utf8(file.read(HEAD_BYTES), layout.encoding):
            return ""
    return (
        f"{path} is read in {layout.encoding}, but seems to be UTF-8. If it is: "
        f"{layout.prefix}encoding=utf-8"
    )
