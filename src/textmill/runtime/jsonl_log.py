"""A file of lines, such as ``metrics.jsonl``, that a resumed run cuts back to its checkpoint."""

import json
import logging
import os
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from textmill.errors import RunError
from textmill.runtime.disk import open_in_place, operations, storing, sync_folder, write_all
from textmill.runtime.files import MOST_ITEMS, count_items

LONGEST_LINE = 64 << 20
"""Bytes of a line that is read."""
_LOGGER = logging.getLogger("textmill")
_BLOCK = 1 << 16


def is_read(line: bytes) -> bool:
    """Whether a line is one that :func:`read_lines` gives: of bounded bytes and items.

    Its items take 200 MB at most: enough for four values of each of 260,000 labels.
    """
    return len(line) <= LONGEST_LINE and count_items(line) <= MOST_ITEMS


def read_lines(path: Path, most: int | None = None) -> Iterator[dict[str, Any]]:
    """The objects, all or the first ``most``, of a file of JSON lines; of a missing one none.

    A line that is cut off or damaged is left out, and one that is too large with a warning.
    """
    if not path.is_file():
        return
    given = number = 0
    with path.open("rb") as file:
        while (most is None or given < most) and (line := file.readline(LONGEST_LINE + 1)):
            number += 1
            if not is_read(line):
                _LOGGER.warning(
                    "%s:%d: left out: a line of more than %s bytes, or of more than %s values.",
                    *(path, number, f"{LONGEST_LINE:,}", f"{MOST_ITEMS:,}"),
                )
                while line and not line.endswith(b"\n"):
                    line = file.readline(LONGEST_LINE)
                continue
            with suppress(ValueError, RecursionError):
                if line.endswith(b"\n") and isinstance(found := json.loads(line), dict):
                    given += 1
                    yield found


def json_line(value: Mapping[str, Any]) -> bytes:
    """An object as a line of plain JSON, which has no NaN or infinity: these are a ValueError."""
    text = json.dumps(value, ensure_ascii=False, allow_nan=False)
    return f"{text}\n".encode("utf-8", "backslashreplace")  # of a lone surrogate: JSON's escape


class LineLog:
    """Appends lines to a file, which only ever has whole lines.

    A half line that a crash left is cut off on opening. Every line is handed to the system at once;
    call ``sync`` before ``size`` is saved in a checkpoint, so that the lines outlive a power cut as
    well.

    Raises:
        StorageError: The file cannot be opened or written; no half line stays behind.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        is_new = not path.exists()
        self._descriptor = open_in_place(path, os.O_RDWR | os.O_CREAT)
        try:
            found = os.fstat(self._descriptor).st_size
            self.size = self._end_of_last_line(found)
            """Bytes of all whole lines so far."""
            if self.size != found:
                with storing(path):
                    operations.truncate(self._descriptor, self.size)
            if is_new:
                sync_folder(path.parent)
        except BaseException:
            self.close()
            raise

    def append(self, line: bytes) -> None:
        """Adds a line, with its line end. After an error the file is as before, and still open."""
        with storing(self.path, len(line)):
            try:
                self.size += write_all(self._descriptor, memoryview(line), self.size)
            except OSError:
                os.ftruncate(self._descriptor, self.size)
                raise

    def sync(self) -> None:
        with storing(self.path):
            operations.fsync(self._descriptor)

    def truncate_to(self, byte_size: int) -> None:
        """Forgets every line after the first ``byte_size`` bytes, a value that ``size`` had before.

        Raises:
            RunError: the file is shorter, or a line does not end there: it is not the file that was
            measured.
        """
        if byte_size == self.size:
            return
        if byte_size > self.size:
            raise RunError(
                f"{self.path} should have at least {byte_size:,} bytes, but has {self.size:,}: "
                f"lines that the checkpoint counted are missing."
            )
        if byte_size < 0 or (byte_size and os.pread(self._descriptor, 1, byte_size - 1) != b"\n"):
            raise RunError(
                f"{self.path} cannot be cut to {byte_size:,} bytes: no line ends there. "
                f"It is not the file that the checkpoint knows."
            )
        with storing(self.path):
            operations.truncate(self._descriptor, byte_size)
            self.size = byte_size
            operations.fsync(self._descriptor)

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> "LineLog":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def _end_of_last_line(self, end: int) -> int:
        while end > 0:
            start = max(0, end - _BLOCK)
            newline = os.pread(self._descriptor, end - start, start).rfind(b"\n")
            if newline >= 0:
                return start + newline + 1
            end = start
        return 0
