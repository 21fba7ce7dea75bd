"""What every format of rows offers, and what one pass over a file gives."""

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO, cast

from typing_extensions import override

from weft.data.bad_rows import BadRow
from weft.data.line_blocks import (
    BOM,
    MAX_LINE_BYTES,
    Block,
    FileNotes,
    LineBlocks,
    LongLine,
    excerpt,
)
from weft.errors import UserError

__all__ = [
    "CountingScan",
    "LineScan",
    "RawLine",
    "Row",
    "RowFormat",
    "Scan",
    "numbered",
    "text_of",
    "too_long",
]

Row = tuple[str, ...]


class Scan(ABC):
    """One pass over one file; what is known of the whole file is so when the pass has ended.

    Iterating gives the line (or number, from 1) where a row begins, and the row or what is wrong.
    """

    notes: FileNotes
    """Oddities that did no harm."""
    place: int = 0
    """Where the row given last begins: its byte, or its number from 0 (Parquet, Arrow)."""

    @abstractmethod
    def __iter__(self) -> Iterator[tuple[int, Row | BadRow]]: ...

    @property
    @abstractmethod
    def total(self) -> int:
        """Rows, good and bad."""

    @property
    @abstractmethod
    def sha256(self) -> str:
        """Of the file's bytes, hexadecimal."""


class CountingScan(Scan):
    """A pass that counts its rows and takes the digest of its file itself.

    Args:
        stream: Open for reading bytes.
        name: What errors call the file.
    """

    def __init__(self, stream: BinaryIO, name: str) -> None:
        self._stream, self.name = stream, name
        self.notes = FileNotes()
        self._total, self._digest = 0, ""

    @property
    @override
    def total(self) -> int:
        return self._total

    @property
    @override
    def sha256(self) -> str:
        return self._digest


@dataclass(frozen=True)
class RowFormat(ABC):
    """How a file becomes rows.

    Attributes:
        columns: Name to its place in the file: a position (from 0) or a name there.
        required: Columns that must be there and not be blank; the others are ``""`` where absent.
    """

    columns: Mapping[str, int | str]
    required: tuple[str, ...]

    def __post_init__(self) -> None:
        known = ", ".join(self.columns)
        if not self.columns:
            raise UserError("columns: wanted at least one column, found none.")
        for name in self.required:
            if name not in self.columns:
                raise UserError(f"required: wanted names of columns ({known}), found {name!r}.")

    def check_places(self, *, header: bool) -> None:
        """Refuses a position below 0, and a name where no header has it."""
        for name, at in self.columns.items():
            if isinstance(at, int) and at < 0:
                raise UserError(
                    f"columns: wanted a position from 0 for {name!r}, found {at}. Positions from "
                    "the end are those of CoNLL files, a token in a line: if it is one, say so by "
                    "train_data.format=conll, which valid_data follows."
                )
            if isinstance(at, str) and not header:
                raise UserError(
                    f"columns: {name!r} is to be found by the name {at!r}, which needs header=true."
                )

    @abstractmethod
    def scan(self, stream: BinaryIO, name: str) -> Scan:
        """Starts a pass over an open file, which errors call ``name``."""

    def scan_part(self, stream: BinaryIO, name: str) -> Scan:
        """Starts a pass over a part of a file that begins with a good row."""
        return self.scan(stream, name)

    def between(self, path: Path, start: int, stop: int | None, *, head: int) -> Iterator[Row]:
        """The good rows from one place of a file up to another; only they are read.

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
            yield from (row for _, row in scan if not isinstance(row, BadRow))

    def blank(self, row: Row) -> str | None:
        """What is wrong with a row whose required column is blank; None where none is."""
        for name, value in zip(self.columns, row, strict=True):
            if name in self.required and not value.strip():
                return f"column {name!r} is empty"
        return None


def numbered(
    columns: Sequence[str] | Mapping[str, int | str], required: Sequence[str] | None
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
    return dict(columns), tuple(columns) if required is None else tuple(required)


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
class RawLine:
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

    def bad(self, file: str, reason: str) -> BadRow:
        """This line as a bad row."""
        return BadRow(file, self.number, self.offset, reason, excerpt(self.raw))


class LineScan(Scan):
    """A pass over a file of lines.

    Args:
        stream: Open for reading bytes.
        name: What errors call the file.
        longest: The longest line that is read, in bytes.
    """

    def __init__(self, stream: BinaryIO, name: str, longest: int = MAX_LINE_BYTES) -> None:
        self.name, self.longest = name, longest
        self._blocks = LineBlocks(stream, name, longest)
        self.notes = self._blocks.notes

    @property
    def num_lines(self) -> int:
        """Lines read so far."""
        return self._blocks.lines

    @property
    @override
    def sha256(self) -> str:
        """Of the bytes read so far."""
        return self._blocks.sha256

    def lines(self) -> Iterator[RawLine]:
        """All lines, one by one."""
        for block in self._blocks:
            if isinstance(block, LongLine):
                reason = too_long(block.size, self.longest)
                yield RawLine(block.head, block.line, block.offset, b"\n", reason)
            else:
                yield from self._split(block)

    def _split(self, block: Block) -> Iterator[RawLine]:
        lines = block.data.split(b"\n")
        last = None if lines[-1] else lines.pop()
        offset = block.offset
        for at, ended in enumerate(lines):
            closed = last is not None or at < len(lines) - 1
            raw = ended.removesuffix(b"\r")
            end = ended[len(raw) :] + b"\n" * closed
            problem = too_long(len(raw), self.longest) if len(raw) > self.longest else None
            yield RawLine(raw, block.line + at, offset, end, problem)
            offset += len(raw) + len(end)


def text_of(raw: bytes, *, first: bool = False) -> tuple[str, str | None]:
    r"""The text of a line, and what is wrong with its bytes; NUL is.

    Args:
        raw: The line.
        first: Whether it is the file's first: UTF-16 shows there.

    Example:
        >>> text_of(b"caf\xe9")[1]
        'bad UTF-8: 0xe9 at byte 3 of the line (unexpected end of data)'
    """
    try:
        text = raw.decode("utf-8")
    except UnicodeDecodeError as error:
        is_utf16 = first and raw.startswith((b"\xff\xfe", b"\xfe\xff"))
        hint = "; so begins a file in UTF-16" if is_utf16 else ""
        return "", (
            f"bad UTF-8: 0x{raw[error.start]:02x} at byte {error.start} of the line "
            f"({error.reason}{hint})"
        )
    if "\0" in text:
        return "", f"NUL at byte {raw.index(0)} of the line"
    return text, None


def too_long(size: int, longest: int) -> str:
    """What is wrong with a line of so many bytes.

    >>> too_long(12, 10)
    'the line has 12 bytes, and max_line_bytes is 10'
    """
    return f"the line has {size} bytes, and max_line_bytes is {longest}"
