"""Advice on bad rows that one setting would fix, such as another encoding."""

from collections.abc import Collection, Sequence
from pathlib import Path

from textmill.data.bad_rows import BadRow
from textmill.data.formats.row_format import LinesFormat, RowFormat
from textmill.text.encodings import HEAD_BYTES, UTF8, is_undecodable, is_utf8, likely_encoding

SHOWN = 30
"""Characters before what is not UTF-8, and after it, that are shown."""


def advice_on(
    bad_rows: Sequence[BadRow], layout: RowFormat, ingredient: str, may_lack: Collection[str] = ()
) -> str:
    """The setting with which most of the bad rows can be read; empty if there is none.

    Args:
        bad_rows: Those of a file, or of several.
        layout: How they were read.
        ingredient: Whose settings the advice names.
        may_lack: Columns of which the task takes an empty cell.

    Returns:
        A sentence, for rows that are not UTF-8 or have empty cells where these are allowed.
    """
    undecodable = [row for row in bad_rows if is_undecodable(row.reason)]
    if 2 * len(undecodable) > len(bad_rows):
        return encoding_advice(Path(undecodable[0].file), layout, f"{ingredient}.")
    reasons = {f"column {name!r} is empty": name for name in may_lack}
    empty = {reasons[row.reason] for row in bad_rows if row.reason in reasons}
    if not empty or any(row.reason not in reasons for row in bad_rows):
        return ""
    before = [name for name in layout.columns if name not in layout.must_exist]
    names = ",".join([*before, *sorted(empty)])
    return f"If an empty cell is a row that has none of the labels: {ingredient}.optional=[{names}]"


def file_encoding(path: Path, layout: RowFormat) -> str | None:
    """The encoding that a file likely has, if it is read as UTF-8 and is not; else None."""
    if not isinstance(layout, LinesFormat) or layout.encoding != UTF8 or not path.is_file():
        return None
    with path.open("rb") as file:
        return likely_encoding(file.read(HEAD_BYTES))


def encoding_advice(path: Path, layout: RowFormat, prefix: str = "") -> str:
    """How a file that is not UTF-8 reads in its likely encoding, and the setting; else empty.

    Args:
        path: The file.
        layout: How it is read.
        prefix: What stands before the setting's name.
    """
    if (likely := file_encoding(path, layout)) is None:
        return ""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    at = _undecodable_at(head)
    begin, end = head.rfind(b"\n", 0, at) + 1, head.find(b"\n", at)
    before, after = head[begin:at].decode(likely), head[at : max(end, at + 1)].decode(likely)
    shown = f"{before[-SHOWN:]}{after[:SHOWN].rstrip()}"
    number = head.count(b"\n", 0, at) + 1
    return (
        f"{path} is not UTF-8: 0x{head[at]:02x} is at byte {at}. In {likely}, as Windows and Excel "
        f"save it, line {number} has {shown!r}. If that is right: {prefix}encoding={likely}"
    )


def utf8_warning(path: Path, layout: RowFormat, prefix: str = "") -> str:
    """A warning of a file that is UTF-8 and is read in another encoding; else empty.

    Each character beyond ASCII would be read as two or three others.

    Args:
        path: The file.
        layout: How it is read.
        prefix: What stands before the setting's name.
    """
    if not isinstance(layout, LinesFormat) or layout.encoding == UTF8:
        return ""
    with path.open("rb") as file:
        if not is_utf8(file.read(HEAD_BYTES), layout.encoding):
            return ""
    return (
        f"{path} is read in {layout.encoding}, but seems to be UTF-8. If it is: "
        f"{prefix}encoding=utf-8"
    )


def _undecodable_at(data: bytes) -> int:
    """The first byte that is not UTF-8."""
    try:
        data.decode(UTF8)
    except UnicodeDecodeError as error:
        return error.start
    return 0
