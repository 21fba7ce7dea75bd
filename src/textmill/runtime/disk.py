"""The few calls that change the disk, in one place, and the parts of every safe write.

Everything that changes the disk goes through :data:`operations`, so that a test can fail the k-th
call for k = 1, 2, 3 ... until a whole save passes (the method of SQLite's tests).
"""

import fcntl
import hashlib
import itertools
import os
import shutil
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EDQUOT, EEXIST, EFBIG, EIO, ELOOP, ENOENT, ENOSPC
from pathlib import Path

from textmill.errors import StorageError

_BUFFER = 1 << 20
"""Bytes up to which small writes are gathered: 1,000 tensors are not 1,000 system calls."""
_NO_ROOM = frozenset({EDQUOT, EFBIG, ENOSPC})


class Operations:
    """The calls that change the disk, and nothing else; tests make the k-th of them fail."""

    def open(self, path: Path, flags: int) -> int:
        """Opens a file descriptor that child programs do not inherit."""
        return os.open(path, flags | os.O_CLOEXEC, 0o644)

    def write(self, descriptor: int, data: memoryview, offset: int) -> int:
        """Writes at ``offset``; returns how many bytes were taken, which may be fewer."""
        return os.pwrite(descriptor, data, offset)

    def fsync(self, descriptor: int) -> None:
        """Returns when the data is on the disk, not only in its cache."""
        if sys.platform == "darwin":  # fsync() of macOS leaves the data in the drive's cache
            with suppress(OSError):
                fcntl.fcntl(descriptor, fcntl.F_FULLFSYNC)
                return
        os.fsync(descriptor)

    def truncate(self, descriptor: int, size: int) -> None:
        os.ftruncate(descriptor, size)

    def rename(self, source: Path, target: Path) -> None:
        """Renames; an existing target file is replaced in the same instant."""
        os.rename(source, target)

    def mkdir(self, path: Path) -> None:
        os.mkdir(path)

    def free(self, folder: Path) -> int:
        """Bytes that this user can still write in the file system of ``folder``."""
        return shutil.disk_usage(folder).free


operations = Operations()
"""What every function here calls, looked up at each call."""


def storage_error(path: Path, error: OSError, *, needed: int | None = None) -> StorageError:
    """Says which file could not be written, why, and what to do."""
    reason = error.strerror or str(error)
    what, advice = "", "Mend that, then start again with the same command."
    if error.errno in _NO_ROOM:
        free = "?"
        with suppress(OSError):
            free = f"{operations.free(path if path.is_dir() else path.parent):,}"
        reason += f" ({'?' if needed is None else f'{needed:,}'} bytes needed, {free} bytes free)"
        advice = "Make room, then start again with the same command."
    elif error.errno == ELOOP:
        reason = "it is a symbolic link"
        advice = "Nothing is written through a link: put a file of its own there, then start again."
    else:
        itself = [path.absolute()] if error.errno == EEXIST else []  # it was to be a folder
        places = (*itself, *path.absolute().parents)
        place = next((folder for folder in places if folder.exists()), None)
        if error.errno == ENOENT and place != path.absolute().parent:
            what = f"There is no folder {path.absolute().parent}: was it renamed or deleted? "
            advice = "Go on in the folder that it is now."
        elif place is not None and not place.is_dir():
            what = f"{place} is no folder. "
            advice = "Move it away, or name another folder, then start again."
        elif place is not None and not os.access(place, os.W_OK | os.X_OK):
            what = f"The folder {place} is not writable. "
            advice = "Make it writable, or name another folder, then start again."
    return StorageError(
        f"{path} cannot be written: {reason}. {what}What was saved before is intact. {advice}"
    )


@contextmanager
def storing(path: Path, needed: int | None = None) -> Iterator[None]:
    """Turns every OSError of the block into a StorageError about ``path``."""
    try:
        yield
    except OSError as error:
        raise storage_error(path, error, needed=needed) from error


def open_in_place(path: Path, flags: int) -> int:
    """Opens a file that is written where it is, not replaced; a symbolic link is refused."""
    with storing(path):
        return operations.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK)


def outward_links(folder: Path, written: Mapping[str, bool]) -> list[Path]:
    """Links to places outside a folder, in the folders that textmill writes, renames or deletes.

    A file that is a link is refused when it is opened, or replaced as a whole; every other link is
    a person's own, and is not followed.

    Args:
        folder: The folder of a run.
        written: Names, in lower case, of the folders in it that textmill writes. True: files are
            written into the folder as it is. False: the folder is replaced as a whole, so its
            content does not matter.
    """
    found: list[Path] = []
    for top in folder.iterdir() if folder.is_dir() else ():
        name = top.name.casefold()  # some disks take any case for the same name
        if name not in written and not any(part in name for part in (".tmp-", ".old-")):
            continue
        within = os.walk(top) if written.get(name, True) and not top.is_symlink() else ()
        inside = [Path(root, name) for root, *names in within for name in itertools.chain(*names)]
        found += _outward((top, *inside), folder)
    return sorted(found)


def _outward(paths: Iterable[Path], folder: Path) -> list[Path]:
    home = os.path.realpath(folder)
    links = filter(Path.is_symlink, paths)
    return [link for link in links if not Path(os.path.realpath(link)).is_relative_to(home)]


def refuse_outward_folder(folder: Path, home: Path) -> None:
    """Refuses to write in a folder of a run if a link on the way leads out of the run."""
    way = itertools.takewhile(lambda path: path != home, (folder, *folder.parents))
    _refuse(_outward(way, home), home)


def refuse_outward_links(folder: Path, written: Mapping[str, bool]) -> None:
    """Refuses a folder with links of :func:`outward_links`; it may itself be a link.

    A process checks it on entering; from then on, no file is opened through a link.
    """
    _refuse(outward_links(folder, written), folder)


def _refuse(links: Iterable[Path], folder: Path) -> None:
    for path in links:
        raise StorageError(
            f"{path} is a link to {os.path.realpath(path)}, which is not in {folder}: nothing is "
            "written or deleted there. Put what it leads to in its place; the whole of "
            f"{folder} may be a link to another disk."
        )


class HashingFile:
    """A new file that is hashed while it is written; durable once ``close`` returned."""

    def __init__(self, path: Path, *, needed: int | None = None) -> None:
        """``needed`` is the final size if it is known, for the error's text."""
        self.path = path
        self.size = 0
        self._needed = needed
        self._hash = hashlib.sha256()
        self._buffer = bytearray()
        self._written = 0
        with storing(path, needed):
            with suppress(FileNotFoundError):
                os.unlink(path)  # what has that name may be a link to another file
            self._descriptor = operations.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL)

    @property
    def sha256(self) -> str:
        """Hexadecimal digest of all bytes given to ``write``."""
        return self._hash.hexdigest()

    def write(self, data: bytes | bytearray | memoryview) -> None:
        self._hash.update(data)
        self.size += len(data)
        if len(self._buffer) + len(data) < _BUFFER:
            self._buffer += data
        else:
            self._flush(data)

    def _flush(self, data: bytes | bytearray | memoryview = b"") -> None:
        gathered, self._buffer = self._buffer, bytearray()
        with storing(self.path, max(self._needed or 0, self.size)):
            for part in (gathered, data):
                self._written += write_all(self._descriptor, memoryview(part), self._written)

    def close(self) -> None:
        """Writes what is left and waits until it is on the disk."""
        try:
            self._flush()
            with storing(self.path, self.size):
                operations.fsync(self._descriptor)
        finally:
            self.abandon()

    def abandon(self) -> None:
        """Closes without promising anything about the content."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def __enter__(self) -> "HashingFile":
        return self

    def __exit__(self, kind: object, *_: object) -> None:
        if kind is None:
            self.close()
        else:
            self.abandon()


def write_all(descriptor: int, data: memoryview, offset: int) -> int:
    """Writes every byte at ``offset``; a write that takes nothing is an error."""
    done = 0
    while done < len(data):
        taken = operations.write(descriptor, data[done:], offset + done)
        if taken <= 0:
            raise OSError(EIO, "The file system took no bytes")
        done += taken
    return done


def sync_folder(folder: Path) -> None:
    """Waits until the names in a folder (new, renamed, deleted) are on the disk."""
    with storing(folder):
        sync_path(folder, os.O_DIRECTORY)


def sync_path(path: Path, flags: int) -> None:
    """Opens what is there with these flags, and waits until it is on the disk."""
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | flags)
    try:
        operations.fsync(descriptor)
    finally:
        os.close(descriptor)
