"""One process at a time in a run folder."""

import fcntl
import os
import socket
from contextlib import suppress
from errno import EACCES, EAGAIN
from pathlib import Path
from types import TracebackType

from weft.errors import InUseError, StorageError
from weft.runtime.disk import (
    open_in_place,
    operations,
    refuse_outward_links,
    storing,
    write_all,
)

__all__ = ["LOCK_FILE", "Lock"]

LOCK_FILE = "lock"
"""Its name in the run folder."""


class Lock:
    """Holds ``folder/lock`` while the block runs.

    The system drops it when the process dies, however it dies. The file's content, ``host:pid``, is
    for people only; a stale file of a dead process hinders nobody, and a forked child (a data
    worker) does not keep the lock after its parent.

    Raises:
        InUseError: another process holds it; names that process.
        StorageError: the folder cannot be written, a part of it is a link to a place outside it, or
            its file system has no locks.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with Lock(Path(folder)):
        ...         pass
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / LOCK_FILE
        self._descriptor = -1

    def __enter__(self) -> "Lock":
        refuse_outward_links(self.folder)
        descriptor = open_in_place(self.path, os.O_RDWR | os.O_CREAT)
        try:
            self._take(descriptor)
            owner = f"{socket.gethostname()}:{os.getpid()}\n".encode()
            with storing(self.path, len(owner)):
                operations.truncate(descriptor, 0)
                write_all(descriptor, memoryview(owner), 0)
        except BaseException:
            os.close(descriptor)
            raise
        self._descriptor = descriptor
        os.register_at_fork(after_in_child=self._close)
        return self

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno not in (EACCES, EAGAIN):
                raise StorageError(
                    f"{self.path} cannot be locked: {error.strerror}. Two processes in one run "
                    f"folder would destroy each other's files, so nothing was started; "
                    f"use a file system that has locks."
                ) from error
            owner = (
                os.pread(descriptor, 300, 0).decode("utf-8", "replace").strip() or "another process"
            )
            raise InUseError(
                f"{self.folder} is in use by {owner}. Wait for it to end or stop it, "
                f"or choose another folder with --run-dir."
            ) from None

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._close()

    def _close(self) -> None:
        """Closes our descriptor; in a forked child that does not end the parent's lock."""
        if self._descriptor >= 0:
            with suppress(OSError):
                os.close(self._descriptor)
            self._descriptor = -1
