"""What every format of rows offers, and what one pass over a file gives."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, ClassVar, Generic, NamedTuple, TypeVar, cast

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
from textmill.text.cells import ColumnCheck, RowCheck
from textmill.text.encodings import BOM, UTF8, checked_encoding, decoded

Row = tuple[str, ...]
Columns = Sequence[str] | Mapping[str, int | str]
"""Names, or each name with its place in the file: a position (from 0) or a name there."""
PAIR = ("source", "target")

F = TypeVar("F", bound="RowFormat")
L = TypeVar("L", bound="LinesFormat")


class Scan(ABC, Generic[F]):
    """One pass over one file; what is known of the whole file is so when the pass has ended.

    Iterating gives the line (or number, from 1) where a row begins, and the row or what is wrong.

    Args:
        stream: Open for reading bytes.
        name: What errors call the file.
        layout: How it is read.

    Attributes:
        notes: Oddities that did no harm.
        place: Where the row given last begins: its byte, or its number from 0 (Parquet, Arrow).
        record: All that the row given last has, good or bad: its fields in their order, an object
            by its keys, or the text that a line of JSON is. None where it is none of these, and of
            Parquet and Arrow.
        names: What a header calls the fields.
        total: Rows, good and bad.
        sha256: Of the file's bytes, hexadecimal.
    """

    def __init__(self, stream: BinaryIO, name: str, layout: F) -> None:
        self.stream, self.name, self.layout = stream, name, layout
        self.notes = FileNotes()
        self.place, self.total, self.sha256 = 0, 0, ""
        self.record: Sequence[str] | Mapping[str, Any] | None = None
        self.names: Sequence[str] = ()

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]: ...

    def parts(self) -> Iterator[tuple[int, Row | BadRow | list[list[str]]]]:
        """What iterating gives, or the columns of many rows at once with the line of the first."""
        return iter(self)

    @property
    def byte(self) -> int | None:
        """The byte that the row given last begins at; None where ``place`` is its number."""
        return self.place


@dataclass(frozen=True)
class RowFormat(ABC):
    """How a file becomes rows.

    Attributes:
        columns: Name to its place in the file: a position (from 0) or a name there.
        required: Columns that must be there and not be blank; the others are ``""`` where absent.
        others: What positions that are not read are called, where no header names them.
        present: Columns that the file must have, though a cell of them may be blank.
        check: Says what else is wrong with a row; None: nothing is asked.
    """

    columns: Mapping[str, int | str]
    required: tuple[str, ...]
    others: Mapping[int, str] = field(default_factory=dict, kw_only=True)
    present: tuple[str, ...] = field(default=(), kw_only=True)
    check: RowCheck | None = field(default=None, kw_only=True)

    SCAN: ClassVar[type[Scan[Any]]]
    """What passes over a file."""

    def __post_init__(self) -> None:
        known = ", ".join(self.columns)
        if not self.columns:
            raise UserError("columns: wanted at least one column, found none.")
        for name in self.required:
            if name not in self.columns:
                raise UserError(f"required: wanted names of columns ({known}), found {name!r}.")

    @property
    def has_header(self) -> bool:
        """Whether the file begins with one."""
        return False

    def reading(self) -> dict[str, Any]:
        """All that decides what the rows are, as JSON: fingerprints and indexes are named by it."""
        found = asdict(self)
        for layout in (found, found.get("inner", {})):
            layout.pop("others", None)
            layout.pop("present", None)
            if layout.get("check", None) is None:
                layout.pop("check", None)
        return found

    def scan(self, stream: BinaryIO, name: str) -> Scan[Any]:
        """Starts a pass over an open file, which errors call ``name``."""
        return self.SCAN(stream, name, self)

    def scan_part(self, stream: BinaryIO, name: str) -> Scan[Any]:
        """Starts a pass over a part of a file that begins with a good row."""
        return self.scan(stream, name)

    def between(
        self, path: Path, start: int, stop: int | None, *, head: int
    ) -> Iterator[Row | list[list[str]]]:
        """The good rows from one place of a file up to another; only they are read.

        Given are rows, or the columns of many at once.

        Args:
            path: The file.
            start: Where the first row begins.
            stop: Where the row after the last begins; None: all rows to the end.
            head: Where the file's first row begins: what is before it, a header, is read too.
        """
        with path.open("rb") as file:
            # A mark of our own is stripped; without it one that a row begins with would be.
            before = file.read(head) or BOM
            file.seek(start)
            size = None if stop is None else stop - start
            scan = self.scan_part(cast("BinaryIO", _Excerpt(before, file, size)), str(path))
            for _, found in scan.parts():
                if not isinstance(found, BadRow):
                    yield found

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
        if isinstance(self.check, ColumnCheck):
            return not self.check.passes(dict(zip(self.columns, columns, strict=True)))
        return self.check is not None and any(map(self.problem, zip(*columns, strict=True)))


def numbered(
    columns: Columns, required: Sequence[str] | None
) -> tuple[dict[str, int | str], tuple[str, ...]]:
    """Each column with its place, which is its number where only names are given.

    Returns:
        The places, and the columns that a row cannot be without: all where none are given.

    Example:
        >>> numbered(("source", "target"), None)
        ({'source': 0, 'target': 1}, ('source', 'target'))
    """
    if not isinstance(columns, Mapping):
        columns = {name: at for at, name in enumerate(columns)}
    return dict(columns), tuple(columns if required is None else required)


class _Excerpt:
    """Some bytes, then those of a file from its present place on, up to a number of them."""

    def __init__(self, before: bytes, file: BinaryIO, size: int | None) -> None:
        self._before, self._file, self._left = before, file, size

    def read(self, size: int) -> bytes:
        if self._before:
            given, self._before = self._before[:size], self._before[size:]
            return given
        size = size if self._left is None else min(size, self._left)
        given = self._file.read(size)
        if self._left is not None:
            self._left -= len(given)
        return given


@dataclass(frozen=True)
class LinesFormat(RowFormat):
    """A format whose files are read line by line.

    Attributes:
        max_line_bytes: A longer line is a bad row, and is not held in memory.
        encoding: How its bytes become text; its bytes below 128 are those of ASCII.
    """

    max_line_bytes: int = MAX_LINE_BYTES
    encoding: str = field(default=UTF8, kw_only=True)

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "encoding", checked_encoding(self.encoding))

    longest_called: ClassVar[str] = "max_line_bytes"
    """What errors call the bound of a line."""


class RawLine(NamedTuple):
    """One line as it is in the file, without its end."""

    raw: bytes
    number: int
    """From 1."""
    offset: int
    """Where it begins, in bytes from 0."""
    end: bytes
    """LF, CR LF, or nothing at the end of the file."""
    problem: str | None = None
    """Why it was not read: ``raw`` is its beginning then."""

    encoding: str = UTF8

    def bad(self, file: str, reason: str) -> BadRow:
        """This line as a bad row."""
        shown = excerpt(self.raw, self.encoding)
        return BadRow(file, self.number, self.offset, reason, shown)

    def text(self) -> tuple[str, str | None]:
        """Its text, and what is wrong with it; no text of one that was not read."""
        if self.problem is not None:
            return "", self.problem
        return decoded(self.raw, self.encoding, first=self.number == 1)


class LineScan(Scan[L]):
    """A pass over a file of lines."""

    def __init__(self, stream: BinaryIO, name: str, layout: L) -> None:
        super().__init__(stream, name, layout)
        self.longest = layout.max_line_bytes
        self.blocks = LineBlocks(stream, name, self.longest)
        self.notes = self.blocks.notes

    def lines(self) -> Iterator[RawLine]:
        """All lines, one by one."""
        for block in self.blocks:
            yield from self.split(block)
        self.sha256 = self.blocks.sha256

    def split(self, block: Block | LongLine) -> Iterator[RawLine]:
        """The lines of a block."""
        if isinstance(block, LongLine):
            reason = self._too_long(block.size)
            place = block.line, block.offset
            yield RawLine(block.head, *place, b"\n", reason, self.layout.encoding)
            return
        lines = block.data.split(b"\n")
        last = None if lines[-1] else lines.pop()
        offset = block.offset
        for at, ended in enumerate(lines):
            closed = last is not None or at < len(lines) - 1
            raw = ended.removesuffix(b"\r")
            end = ended[len(raw) :] + b"\n" * closed
            problem = self._too_long(len(raw)) if len(raw) > self.longest else None
            yield RawLine(raw, block.line + at, offset, end, problem, self.layout.encoding)
            offset += len(raw) + len(end)

    def _too_long(self, size: int) -> str:
        return f"the line has {size} bytes, and {self.layout.longest_called} is {self.longest}"


class NumberedScan(Scan[F]):
    """A pass over a file whose rows have numbers and no bytes."""

    @abstractmethod
    def numbered(self, first: int) -> Iterator[tuple[int, Row | BadRow]]:
        """The rows from number ``first`` on."""

    @property
    @override
    def byte(self) -> None:
        return None


class NumberedFormat(RowFormat):
    """A format of such files."""

    @override
    def between(self, path: Path, start: int, stop: int | None, *, head: int) -> Iterator[Row]:
        with path.open("rb") as stream:
            scan = cast("NumberedScan[Any]", self.scan(stream, str(path)))
            for _, row in scan.numbered(start):
                if stop is not None and scan.place >= stop:
                    return
                if not isinstance(row, BadRow):
                    yield row
