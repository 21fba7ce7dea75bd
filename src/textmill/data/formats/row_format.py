"""What every format of rows offers, and the frame of one pass over a file that all of them share.

A format is one generator, ``rows``: of an open file it gives the line at which each row begins, and
the row or what is wrong with it.
"""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, NamedTuple

from typing_extensions import override

from textmill.data.bad_rows import BadRow
from textmill.data.line_blocks import (
    MAX_LINE_BYTES,
    Block,
    FileNotes,
    LineBlocks,
    LongLine,
    excerpt,
)
from textmill.errors import UserError
from textmill.text.cells import RowCheck
from textmill.text.encodings import HEAD_BYTES, UTF8, checked_encoding, decoded, likely_encoding

Row = tuple[str, ...]
"""The cells of a row, in the order of its format's columns."""
Columns = Sequence[str] | Mapping[str, int | str]
"""Names, or each name with its place in the file: a position (from 0) or a name there."""
PAIR = ("source", "target")
SHOWN = 30
"""Characters before what is not UTF-8, and after it, that are shown."""
Found = tuple[int, Row | BadRow | list[list[str]]]
"""A line, and the row that begins there or what is wrong with it; or the columns of many rows."""


class Scan:
    """One pass over one file; `total`, `notes` and `sha256` are complete when it has ended.

    Iterating gives the line (or number, from 1) where a row begins, and the row or what is wrong.

    Attributes:
        name: What errors call the file.
        notes: Oddities that did no harm.
        place: How much of the file is before the last row: bytes, or rows of Parquet and Arrow.
        record: The whole last row, good or bad: its fields in order, an object by its keys, or the
            text that a line of JSON is. None of anything else, and of Parquet and Arrow.
        names: What a header calls the fields.
        above: Lines above the header, each with its cells or what is wrong with it.
        total: Rows, good and bad.
        sha256: Of the file's bytes, hexadecimal.
    """

    def __init__(self, stream: BinaryIO, name: str, layout: "RowFormat") -> None:
        self.stream, self.name, self.layout = stream, name, layout
        self.notes = FileNotes()
        self.place, self.total, self.sha256 = 0, 0, ""
        self.record: Sequence[str] | Mapping[str, Any] | None = None
        self.names: Sequence[str] = ()
        self.above = list[tuple[int, Sequence[str] | str]]()

    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]:
        for line, found in self.layout.rows(self, whole=False):
            assert not isinstance(found, list)
            self.total += 1
            yield line, found

    def parts(self) -> Iterator[Found]:
        """What iterating gives, or the columns of many rows at once with the line of the first."""
        for line, found in self.layout.rows(self, whole=True):
            self.total += len(found[0]) if isinstance(found, list) else 1
            yield line, found


@dataclass(frozen=True)
class RowFormat(ABC):
    """How a file becomes rows.

    Attributes:
        columns: Name to its place in the file: a position (from 0) or a name there.
        required: Columns that must be there and not be blank; the others are ``""`` if absent.
        others: Names of positions that are not read, for files without a header.
        present: Columns that the file must have, though a cell of them may be blank.
        check: Says what else is wrong with a row; None: nothing else is checked.
        prefix: Put before the names of settings in errors, such as ``train_data.``.
    """

    columns: Mapping[str, int | str]
    required: tuple[str, ...]
    others: Mapping[int, str] = field(default_factory=dict, kw_only=True)
    present: tuple[str, ...] = field(default=(), kw_only=True)
    check: RowCheck | None = field(default=None, kw_only=True)
    prefix: str = field(default="", kw_only=True)

    def __post_init__(self) -> None:
        known = ", ".join(self.columns)
        if not self.columns:
            raise UserError("columns: wanted at least one column, found none.")
        for name in self.required:
            if name not in self.columns:
                raise UserError(f"required: wanted names of columns ({known}), found {name!r}.")

    @abstractmethod
    def rows(self, scan: Scan, *, whole: bool) -> Iterator[Found]:
        """The rows of a file; ``whole`` lets a format give the columns of many rows at once."""

    @property
    def has_header(self) -> bool:
        return False

    def reading(self) -> dict[str, Any]:
        """All that decides what the rows are, as JSON: fingerprints and caches are named by it."""
        found = layout = asdict(self)
        while layout:
            for name in ("others", "present", "prefix"):
                layout.pop(name, None)
            if layout.get("check", None) is None:
                layout.pop("check", None)
            layout = layout.get("inner", {})
        return found

    def scan(self, stream: BinaryIO, name: str) -> Scan:
        """Starts a pass over an open file, which errors call ``name``."""
        return Scan(stream, name, self)

    @property
    def must_exist(self) -> frozenset[str]:
        """Columns without which a file is another than it is taken for."""
        return frozenset((*self.required, *self.present))

    def problem(self, row: Row) -> str | None:
        """What is wrong with a row: a required column is blank, or the check says so; else None."""
        for name, value in zip(self.columns, row, strict=True):
            if name in self.required and not value.strip():
                return f"column {name!r} is empty"
        return None if self.check is None else self.check(dict(zip(self.columns, row, strict=True)))

    def has_problem(self, columns: Sequence[Sequence[str]]) -> bool:
        """Whether one of many rows, given by column, has a :meth:`problem`."""
        for name, values in zip(self.columns, columns, strict=True):
            if name in self.required and not all(map(str.strip, values)):
                return True
        named = dict(zip(self.columns, columns, strict=True))
        return self.check is not None and not self.check.passes(named)


def numbered(
    columns: Columns, required: Sequence[str] | None, *, header: bool = False
) -> tuple[dict[str, int | str], tuple[str, ...]]:
    """The place of each column, and the required columns.

    The place of one of a list of names is its number, or its name if there is a ``header``.
    """
    if not isinstance(columns, Mapping):
        columns = {name: name if header else at for at, name in enumerate(columns)}
    return dict(columns), tuple(columns if required is None else required)


class RawLine(NamedTuple):
    """One line as it is in the file, without its end."""

    raw: bytes
    number: int
    """From 1."""
    place: int
    """Bytes before it."""
    end: bytes
    """LF, CR LF, or nothing at the end of the file."""
    encoding: str
    problem: str | None = None
    """Why it was not read; ``raw`` is then its beginning."""

    def bad(self, file: str, reason: str) -> BadRow:
        return BadRow(file, self.number, reason, excerpt(self.raw, self.encoding))

    def text(self) -> tuple[str, str | None]:
        """Its text, and what is wrong with it; the text is empty if it was not read."""
        if self.problem is not None:
            return "", self.problem
        return decoded(self.raw, self.encoding)


@dataclass(frozen=True)
class LinesFormat(RowFormat):
    """A format whose files are read line by line.

    Attributes:
        max_line_bytes: A longer line is a bad row, and is not held in memory.
        encoding: How its bytes become text, unless a byte order mark says UTF-16.
    """

    max_line_bytes: int = MAX_LINE_BYTES
    encoding: str = field(default=UTF8, kw_only=True)

    longest_called: ClassVar[str] = "max_line_bytes"
    """Name of the limit of a line's length in errors."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "encoding", checked_encoding(self.encoding))

    def blocks(self, scan: Scan) -> Iterator[Block | LongLine]:
        """The blocks of lines of a file; the file's digest is the pass's."""
        blocks = LineBlocks(scan.stream, scan.name, self.max_line_bytes, self.encoding)
        yield from blocks
        scan.sha256 = blocks.sha256

    def lines(self, scan: Scan) -> Iterator[RawLine]:
        for block in self.blocks(scan):
            yield from self.split(block)

    def split(self, block: Block | LongLine) -> Iterator[RawLine]:
        longest, encoding, place = self.max_line_bytes, block.encoding, block.offset
        too_long = f"the line has {{}} bytes, and {self.longest_called} is {longest}"
        if isinstance(block, LongLine):
            problem = too_long.format(block.size)
            yield RawLine(block.head, block.line, place, b"\n", encoding, problem)
            return
        lines = block.data.split(b"\n")
        without_end = len(lines) - 1  # the last one, unless the block ends in LF: then it is none
        if not lines[-1]:
            lines.pop()
        for at, ended in enumerate(lines):
            raw = ended.removesuffix(b"\r")
            end = ended[len(raw) :] + b"\n" * (at < without_end)
            wrong = too_long.format(len(raw)) if len(raw) > longest else None
            yield RawLine(raw, block.line + at, place, end, encoding, wrong)
            place += len(raw) + len(end)


def encoding_advice(file_name: str, layout: RowFormat) -> str:
    """How a file that is not UTF-8 reads in its likely encoding, and the setting; else empty."""
    path = Path(file_name)
    if not isinstance(layout, LinesFormat) or layout.encoding != UTF8 or not path.is_file():
        return ""
    with path.open("rb") as file:
        head = file.read(HEAD_BYTES)
    if (likely := likely_encoding(head)) is None:
        return ""
    if likely.startswith("utf-16"):
        return f"{path} seems to be UTF-16: {layout.prefix}encoding={likely}"
    try:
        head.decode(UTF8)
        at = 0
    except UnicodeDecodeError as error:
        at = error.start
    begin, end = head.rfind(b"\n", 0, at) + 1, head.find(b"\n", at)
    line = head[begin : end if end >= 0 else len(head)].decode(likely, "replace")
    place = len(head[begin:at].decode(likely, "ignore"))
    shown = line[max(place - SHOWN, 0) : place + SHOWN].rstrip()
    number = head.count(b"\n", 0, at) + 1
    return (
        f"{path} is not UTF-8: 0x{head[at]:02x} is at byte {at}. In {likely}, which it seems to "
        f"be, line {number} has {shown!r}. If that is right: {layout.prefix}encoding={likely}"
    )
