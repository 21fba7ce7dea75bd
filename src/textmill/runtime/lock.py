"""One process at a time in a run folder."""

import fcntl
import os
import socket
from collections.abc import Mapping
from contextlib import suppress
from errno import EACCES, EAGAIN
from pathlib import Path

from textmill.errors import InUseError, StorageError, worded
from textmill.runtime.disk import (
    open_in_place,
    operations,
    refuse_outward_links,
    storing,
    write_all,
)

LOCK_FILE = "lock"
"""Its name in the run folder."""
_FILE_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK
_FOLDER_FLAGS = os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY


class Lock:
    """Holds ``folder/lock``, and the folder itself, while the block runs.

    The system drops it when the process dies, however it dies. The file's content, ``host:pid``, is
    for people only; a stale file of a dead process hinders nobody, and a forked child (a data
    worker) does not keep the lock after its parent. None of the folders in it that are ``written``,
    as :func:`~textmill.runtime.disk.outward_links` takes them, may be a link to a place outside.
    If another process holds it, the InUseError names that process.
    """

    def __init__(self, folder: Path, written: Mapping[str, bool] | None = None) -> None:
        self.folder, self.written = folder, written or {}
        self.path = folder / LOCK_FILE
        self._descriptors: list[int] = []

    def __enter__(self) -> "Lock":
        refuse_outward_links(self.folder, self.written)
        descriptor = open_in_place(self.path, os.O_RDWR | os.O_CREAT)
        self._descriptors = [descriptor]
        try:
            self._take(descriptor)
            # The folder, too: its file may be deleted, and another one made in its place.
            self._descriptors.append(os.open(self.folder, _FOLDER_FLAGS))
            self._take(self._descriptors[-1])
            owner = f"{socket.gethostname()}:{os.getpid()}\n".encode()
            with storing(self.path, len(owner)):
                operations.truncate(descriptor, 0)
                write_all(descriptor, memoryview(owner), 0)
        except BaseException:
            self._close()
            raise
        os.register_at_fork(after_in_child=self._close)
        return self

    def _take(self, descriptor: int) -> None:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in (EACCES, EAGAIN):
                raise InUseError(
                    f"{self.folder} is in use by {_owner(self.path)}. Wait for it to "
                    "end or stop it, or choose another folder with "
                    f"{worded('--run-dir', 'run_dir')}."
                ) from None
            if descriptor == self._descriptors[0]:  # some network disks have no locks of folders
                raise StorageError(
                    f"{self.path} cannot be locked: {error.strerror}. Two processes in one run "
                    f"folder would destroy each other's files, so nothing was started; "
                    f"use a file system that has locks."
                ) from error

    def __exit__(self, *_: object) -> None:
        self._close()

    def _close(self) -> None:
        """Closes our descriptors; in a forked child that does not end the parent's lock."""
        while self._descriptors:
            with suppress(OSError):
                os.close(self._descriptors.pop())


def owner_of(folder: Path) -> str | None:
    """Who works in a folder, as ``host:pid`` if it says so; None if nobody does."""
    for path, flags in ((folder, _FOLDER_FLAGS), (folder / LOCK_FILE, _FILE_FLAGS)):
        with suppress(OSError):
            descriptor = os.open(path, flags)
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return _owner(folder / LOCK_FILE)
            finally:
                os.close(descriptor)
    return None


def _owner(path: Path) -> str:
    found = ""
    with suppress(OSError):  # a folder or a pipe of that name has nothing to be read
        descriptor = os.open(path, _FILE_FLAGS)
        try:
            found = os.pread(descriptor, 300, 0).decode("utf-8", "replace").strip()
        finally:
            os.close(descriptor)
    return found or "another process"
