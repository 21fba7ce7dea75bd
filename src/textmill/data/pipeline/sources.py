"""Where pipelines begin: a text file, or a sequence in memory."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, TypeVar

from typing_extensions import override

from textmill.data.line_blocks import MAX_LINE_BYTES
from textmill.data.pipeline.node import Cursor, State
from textmill.errors import DataError, UserError

T = TypeVar("T")
BOM = b"\xef\xbb\xbf"


class SequenceSource(Cursor[T]):
    """The items of a sequence, in order."""

    def __init__(self, items: Sequence[T], epoch: int, state: State | None) -> None:
        self._items, self._index = items, 0 if state is None else state["index"]

    @override
    def __next__(self) -> T:
        if self._index >= len(self._items):
            raise StopIteration
        self._index += 1
        return self._items[self._index - 1]

    @override
    def state(self) -> State:
        return {"index": self._index}


class TextLinesSource(Cursor[str]):
    """The lines of a UTF-8 file, without their ends.

    It reads in blocks and keeps no file open, so that thousands of files can be zipped.
    """

    def __init__(
        self, path: Path, epoch: int, state: State | None, *, rtrim: bool, skip_header: int
    ) -> None:
        self._path, self._rtrim = path, rtrim
        self._size = check_size("read_text", path, state)
        self._line = 0 if state is None else state["line"]
        self._byte = 0 if state is None else state["byte"]
        self._lines: list[bytes] = []
        self._at = 0
        if state is None:
            for _ in range(skip_header):
                self._raw()

    @override
    def __next__(self) -> str:
        raw = self._raw()
        if raw is None:
            raise StopIteration
        try:
            text = raw.removesuffix(b"\n").removesuffix(b"\r").decode("utf-8")
        except UnicodeDecodeError as error:
            raise DataError(
                f"read_text: {self.place()}: bad UTF-8: 0x{raw[error.start]:02x} at byte "
                f"{error.start} of the line ({error.reason})."
            ) from error
        return text.rstrip() if self._rtrim else text

    @override
    def state(self) -> State:
        return {"line": self._line, "byte": self._byte, "size": self._size}

    @override
    def place(self) -> str:
        return f"{self._path}:{self._line}"

    def _raw(self) -> bytes | None:
        if self._at == len(self._lines):
            self._fill()
            if not self._lines:
                return None
        raw = self._lines[self._at]
        self._at += 1
        self._line += 1
        self._byte += len(raw)
        return raw

    def _fill(self) -> None:
        with self._path.open("rb") as file:
            file.seek(self._byte)
            block = file.read(MAX_LINE_BYTES)
            if self._byte == 0 and block.startswith(BOM):
                self._byte, block = len(BOM), block[len(BOM) :]
            cut = block.rfind(b"\n") + 1
            if not cut and len(block) + len(BOM) >= MAX_LINE_BYTES:
                raise DataError(
                    f"read_text: {self._path}:{self._line + 1}: the line has more than "
                    f"{MAX_LINE_BYTES} bytes. Is a line end lost?"
                )
        whole = block[:cut] if cut else block
        *lines, last = whole.split(b"\n")
        self._lines, self._at = [line + b"\n" for line in lines] + [last] * bool(last), 0


def check_size(verb: str, path: Path, state: State | None) -> int:
    """The size of a file; a DataError where the state has another, a UserError where it is gone."""
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UserError(f"{verb}: {path} cannot be read: {error.strerror}.") from error
    if state is not None and state["size"] != size:
        raise DataError(
            f"{verb}: {path} has {size} bytes, and had {state['size']} when the state was saved. "
            "Start anew, or put the old file back."
        )
    return size


def check_count(verb: str, name: str, value: Any, *, least: int = 1) -> None:
    """Raises unless ``value`` is an integer of at least ``least``."""
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise UserError(f"{verb}: {name} must be an integer of at least {least}, found {value!r}.")
