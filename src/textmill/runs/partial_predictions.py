"""The rows of a prediction file that are answered so far, beside it until it is whole."""

import fcntl
import json
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from textmill.errors import InUseError, UserError
from textmill.runtime.bounded_files import VERSION, check_version
from textmill.runtime.disk import open_in_place, operations, storing, sync_folder
from textmill.runtime.files import sha256
from textmill.runtime.jsonl_log import JsonlLog

HEAD = {"written_by": "textmill predict"}
"""What the first line of such a file begins with."""
FORMAT = 1
MAGIC = json.dumps(HEAD).removesuffix("}").encode()
WHAT = {
    "model": "answers of {}, which was another model than {} is now",
    "reading": "rows that were read {}, and this command reads them {}",
}
"""What errors say of that which the answers depend on, as it was and as it is."""


class PartialPredictions:
    """The answers so far: a line of JSON that says what they depend on, and one for each block.

    A block is rows that were answered together. A process that is killed, or a machine that loses
    power, leaves whole lines and perhaps a torn one, which is cut off when the file is opened
    again: the same rows are then answered together as if nothing had happened. One process at a
    time has the file.

    Args:
        output: The file that is to be written; this one is named as it, with ``.part``.
        model: What answers: its digest, and how it is called.
        reading: How the rows are read, in words.
        restart: Whether what there is gives way.

    Raises:
        UserError: There is a file of that name that is none such, or its answers depend on
            something else.
        InUseError: Another process writes it.
        StorageError: It cannot be written.

    Example:
        >>> import tempfile
        >>> output = Path(tempfile.mkdtemp()) / "answers.csv"
        >>> made_of = {"model": ("0a1b", "my-run"), "reading": "header=true"}
        >>> with PartialPredictions(output, **made_of) as part:
        ...     part.append([({"text": "Hi."}, {"prediction": "ham"})], digest="c0de")
        >>> with PartialPredictions(output, **made_of) as part:
        ...     part.rows, part.failed, part.digest, list(part.blocks())
        (1, 0, 'c0de', [[[{'text': 'Hi.'}, {'prediction': 'ham'}]]])
    """

    def __init__(
        self, output: Path, *, model: tuple[str, str], reading: str, restart: bool = False
    ) -> None:
        self.output, self.path = output, part_of(output)
        self._made_of = {"model": model[0], "reading": reading}
        self._called = {
            "model": model[1],
            "reading": f"with {reading}" if reading else "with no settings",
        }
        self._restart, self._lock = restart, -1
        self.rows = self.failed = 0
        """Rows answered, and those of them that could not be."""
        self.digest = ""
        """That of all rows read for them."""

    def __enter__(self) -> Self:
        self._lock = _locked(self.path)
        try:
            self._refuse_foreign()
            self._log = JsonlLog(self.path)
            if self._restart:
                self._log.truncate_to(0)
            self._read()
            if not self._log.size:
                begin = {**HEAD, VERSION: FORMAT}
                self._log.append({**begin, **self._made_of, "called": self._called})
        except BaseException:
            os.close(self._lock)
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._log.close()
        if not self.rows:
            self.path.unlink(missing_ok=True)
        os.close(self._lock)

    def append(
        self, block: Sequence[tuple[Mapping[str, Any], Mapping[str, Any]]], *, digest: str
    ) -> None:
        """Adds rows that were answered together.

        Args:
            block: Of each row its columns, and its answer or ``error``.
            digest: That of all rows read so far, these included.
        """
        failed = sum("error" in answer for _, answer in block)
        self._log.append({"digest": digest, "failed": failed, "rows": block})
        self.rows, self.failed, self.digest = self.rows + len(block), self.failed + failed, digest

    def blocks(self) -> Iterator[list[list[Any]]]:
        """All blocks, each a list of pairs as they were appended."""
        with self.path.open("rb") as file:
            for line in file:
                found = json.loads(line)
                if "rows" in found:
                    yield found["rows"]

    def finish(self, write: Callable[[Path], str]) -> None:
        """Puts the whole file in its place, and ends with this one.

        Args:
            write: Writes the file under the name that it is given, and returns its sha256.
        """
        new = self.output.with_name(f".new-{self.output.name}")
        try:
            digest = write(new)
        except BaseException:
            new.unlink(missing_ok=True)
            raise
        # Killed from here on, the file is known for what it is by whoever finds it.
        self._log.append({"output": digest, "count": self.rows, "failed": self.failed})
        self._log.sync()
        with storing(self.output):
            operations.rename(new, self.output)
        sync_folder(self.output.parent)
        self.path.unlink(missing_ok=True)

    def _refuse_foreign(self) -> None:
        with self.path.open("rb") as file:
            head = file.read(len(MAGIC))
        if not MAGIC.startswith(head):
            raise UserError(
                f"{self.path} is not an unfinished file of textmill predict, which would write "
                "its answers there until they are complete. Move it away, or give another --output."
            )

    def _read(self) -> None:
        """Counts the whole blocks and cuts off the rest: a power cut may leave anything."""
        good = 0
        with self.path.open("rb") as file:
            for line in file:
                try:
                    found = json.loads(line)
                    known = good == 0 or "rows" in found
                except ValueError:
                    break
                if not known:  # the output was written, and is not in its place
                    break
                if good == 0:
                    self._compare(found)
                else:
                    self.rows, self.digest = self.rows + len(found["rows"]), found["digest"]
                    self.failed += found["failed"]
                good += len(line)
        self._log.truncate_to(good)

    def _compare(self, found: Mapping[str, Any]) -> None:
        check_version(
            found, FORMAT, str(self.path), lambda why: UserError(f"{why}. Begin anew: --restart.")
        )
        for name, what in WHAT.items():
            if found.get(name) != self._made_of[name]:
                was, now = found["called"][name], self._called[name]
                raise UserError(
                    f"{self.path} has {what.format(was, now)}. Go on as it was begun, or begin "
                    "anew: --restart."
                )


def part_of(output: Path) -> Path:
    """Where the rows of an unfinished file are."""
    return output.with_name(f"{output.name}.part")


def finished_rows(output: Path) -> tuple[int, int] | None:
    """The rows of a file that was whole when its process was killed, and those with an error.

    What is left beside it is removed. None where there is nothing of the kind.
    """
    part = part_of(output)
    with suppress(OSError, ValueError, IndexError):
        with part.open("rb") as file:
            file.seek(max(0, os.fstat(file.fileno()).st_size - 1000))
            found = json.loads(file.read().splitlines()[-1])
        if isinstance(found, dict) and found.get("output") == sha256(output):
            part.unlink()
            return int(found["count"]), int(found["failed"])
    return None


def _locked(path: Path) -> int:
    """A descriptor of the file, which is made where it is missing, with the only lock on it."""
    while True:
        descriptor = open_in_place(path, os.O_RDWR | os.O_CREAT)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.path.exists(path) and os.path.samestat(os.fstat(descriptor), os.stat(path)):
                return descriptor
        except BlockingIOError:
            os.close(descriptor)
            raise InUseError(
                f"{path} is being written by another process. Wait for it to end or stop it, or "
                "give another --output."
            ) from None
        except OSError:  # a file system without locks
            return descriptor
        os.close(descriptor)  # its process has ended, and its file is gone
