"""Blocks of whole lines of a stream of bytes, in bounded memory; binary files are refused.

UTF-16, by its byte order mark or as it is set, is handed on as UTF-8.

A line ends at LF or at the end of the stream; one CR directly before that end belongs to the end.
A CR anywhere else is data. A line longer than the limit is not held: it is counted and skipped
while it streams past.
"""

import codecs
import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import BinaryIO

from textmill.errors import DataError
from textmill.text.encodings import BOM, UTF8, UTF16_MARKS

BEGINNINGS: Mapping[bytes, tuple[str, str]] = {
    b"%PDF-": ("a PDF", "make text of it first, as `pdftotext FILE.pdf` does"),
    b"PK\x03\x04": (
        "a zip archive, as .docx and .xlsx files are",
        "name a spreadsheet .xlsx, or its format by format=excel; save others as text",
    ),
    b"\x1f\x8b\x08": ("a gzip file", "unpack it first"),
    b"PAR1\x15": ("a Parquet file", "name the file, or its format by format=parquet"),
    b"ARROW1\0\0": ("an Arrow file", "name the file, or its format by format=arrow"),
}
"""How such files begin, what each is, and what to do about it."""
LEAST_BYTES, LEAST_CONTROLS = 4096, 256
"""Of fewer, each line may well be one bad row: with NUL, and with other control characters."""
LOOKED_AT = 1 << 16  # bytes that are counted: a share is known to 1 % then
CONTROLS_SHARE, LINES_SHARE = 0.05, 0.5
"""Of random bytes, and of packed ones, a tenth are such, in nearly all lines; of text in whatever
encoding hardly any, so that its lines are bad rows; a hole in a text is in one line of many."""
CONTROLS = bytes({*range(32)} - {*b"\t\n\v\f\r\x1b"})
"""Bytes that stand in no text."""


def refuse_binary(head: bytes, name: str) -> None:
    """Refuses a file that begins as known binary formats do, or whose bytes are not text."""
    for beginning, (what, remedy) in BEGINNINGS.items():
        if head.startswith(beginning):
            raise DataError(f"{name}: wanted text, found {what}: {remedy}.")
    has_nul = len(head) >= LEAST_BYTES and b"\0" in head
    if has_nul and all(b"\0" in line for line in head.split(b"\n") if line):
        raise DataError(
            f"{name}: wanted text, found NUL in each line of the first {len(head):,} bytes: if it "
            "is text in UTF-16: encoding=utf-16-le. If it is in UTF-32, save it as UTF-8."
        )
    looked = head[:LOOKED_AT]
    share = 1 - len(looked.translate(None, CONTROLS)) / max(len(looked), 1)
    if len(head) >= LEAST_CONTROLS and share >= CONTROLS_SHARE:
        lines = [line for line in looked.split(b"\n") if line]
        odd = sum(line.translate(None, CONTROLS) != line for line in lines)
        if odd >= LINES_SHARE * len(lines):
            raise DataError(
                f"{name}: wanted text, found a binary file: {share:.0%} of its first bytes are "
                "control characters. Make text of it with the program that wrote it."
            )


MAX_LINE_BYTES = 1_000_000  # some thirty times the longest paragraph of Wikipedia
BLOCK_BYTES = 1 << 20  # larger blocks are not faster (11 MB of pairs: 0.17 s from 256 KiB on)
EXCERPT_BYTES = 324  # 80 characters of 4 bytes, and one that the cut may split


@dataclass
class FileNotes:
    """Oddities of a file that cost no row.

    Attributes:
        left_out: Lines of a CoNLL file that are comments or marks of documents.
        above: Lines above the header of a table, such as its title.
        same_ids: Questions of a SQuAD file with the id of an earlier one.
        same_id: The id of the first of these.
    """

    left_out: int = 0
    above: int = 0
    same_ids: int = 0
    same_id: str = ""


@dataclass(frozen=True)
class Block:
    """Whole lines: ``data`` ends after a LF, or at the end of the stream."""

    data: bytes
    line: int
    offset: int
    encoding: str = UTF8


@dataclass(frozen=True)
class LongLine:
    """A line of more bytes than allowed, of which only the beginning was kept."""

    head: bytes
    size: int
    line: int
    offset: int
    encoding: str = UTF8


def excerpt(raw: bytes, encoding: str = UTF8) -> str:
    r"""The first 80 characters; bytes that cannot be decoded are escaped."""
    return raw[:EXCERPT_BYTES].decode(encoding, "backslashreplace")[:80]


@dataclass
class LineBlocks:
    """Iterates over the blocks of a stream once; ``sha256`` fills meanwhile.

    A binary file is refused with a DataError before the first block.
    """

    stream: BinaryIO
    name: str
    max_line_bytes: int = MAX_LINE_BYTES
    encoding: str = UTF8
    """That of the file; once a block was read, that of the blocks."""
    lines: int = 0
    _offset: int = 0
    _utf16: codecs.IncrementalDecoder | None = None
    _hash: "hashlib._Hash" = field(default_factory=hashlib.sha256)

    def __iter__(self) -> Iterator[Block | LongLine]:
        rest, chunk = b"", self._start()
        while chunk:
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield self._block(rest + chunk[:cut])
                rest = chunk[cut:]
            else:
                rest += chunk
            chunk = b""
            if len(rest) > self.max_line_bytes + 1:  # one more: a CR that belongs to the end
                long, chunk = self._skip(rest)
                rest = b""
                yield long
            chunk = chunk or self._read()
        if rest:
            yield self._block(rest)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()

    def _read(self) -> bytes:
        read = getattr(self.stream, "read1", None) or self.stream.read
        chunk, found = b"", b" "
        while found and not chunk:
            found = read(BLOCK_BYTES)
            self._hash.update(found)
            chunk = found if self._utf16 is None else self._as_utf8(found)
        return chunk

    def _as_utf8(self, chunk: bytes) -> bytes:
        """Text in UTF-16 as UTF-8; half a character stays what no UTF-8 has, hence a bad row."""
        assert self._utf16 is not None
        try:
            return self._utf16.decode(chunk, final=not chunk).encode(UTF8, "surrogatepass")
        except UnicodeDecodeError:
            self._utf16.reset()
            return b"\xff"

    def _start(self) -> bytes:
        head, marks = self._read(), (BOM, *UTF16_MARKS, *BEGINNINGS)
        while any(mark.startswith(head) and mark != head for mark in marks) and (
            more := self._read()
        ):
            head += more
        marked = UTF16_MARKS.get(head[:2])
        if marked or self.encoding.startswith("utf-16"):
            decoder = codecs.getincrementaldecoder(marked or self.encoding)
            self._utf16, self.encoding = decoder("surrogatepass"), UTF8
            return self._as_utf8(head[2:] if marked else head) or self._read()
        refuse_binary(head, self.name)
        if not head.startswith(BOM):
            return head
        self._offset = len(BOM)
        # A mark and nothing else is an empty file; reading on must not stop at it.
        return head[len(BOM) :] or self._read()

    def _block(self, data: bytes) -> Block:
        block = Block(data, self.lines + 1, self._offset, self.encoding)
        self._offset += len(data)
        self.lines += data.count(b"\n") + (not data.endswith(b"\n"))
        return block

    def _skip(self, rest: bytes) -> tuple[LongLine, bytes]:
        """Reads to the end of a line that is too long; gives it and what follows it."""
        head, size, last, chunk = b"", 0, b"", rest
        while chunk and b"\n" not in chunk:
            head += chunk[: EXCERPT_BYTES - len(head)]
            size, last = size + len(chunk), chunk[-1:]
            chunk = self._read()
        end, newline, after = chunk.partition(b"\n")
        head += end[: EXCERPT_BYTES - len(head)]
        size, last = size + len(end), end[-1:] or last
        carriage = last == b"\r"
        self.lines += 1
        size -= carriage
        long = LongLine(head[:size], size, self.lines, self._offset, self.encoding)
        self._offset += size + carriage + len(newline)
        return long, after
