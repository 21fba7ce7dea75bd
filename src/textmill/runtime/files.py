"""Files and folders that are either whole or not there, also after a crash or a power cut.

The order is always the same: write to a temporary name in the same folder, fsync the file, rename,
fsync the folder. What is called on the disk is in :mod:`textmill.runtime.disk`.
"""

import fcntl
import hashlib
import os
import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC, EROFS
from pathlib import Path
from stat import S_ISREG

from textmill.errors import StorageError
from textmill.runtime.disk import (
    HashingFile,
    operations,
    storage_error,
    storing,
    sync_folder,
    sync_path,
)

LEFTOVER = re.compile(r"\.(?P<final>.+)\.(tmp|old)-(?P<owner>\d{1,10})", re.DOTALL)
"""The name of what is half-written, half-deleted or moved aside; with the id of the process."""
_STORAGE_ERRNOS = frozenset({EDQUOT, EFBIG, EIO, ENOSPC, EROFS})


def write_file(path: Path, data: bytes | str) -> None:
    """Writes a whole file and waits until it is on the disk; not atomic: for ``new_folder``.

    Raises:
        StorageError: the file cannot be written; names it, the bytes needed and the bytes free.
    """
    content = data.encode() if isinstance(data, str) else data
    with HashingFile(path, needed=len(content)) as file:
        file.write(content)


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replaces a file so that any reader, also after a crash, sees all old or all new content.

    Raises:
        StorageError: the file cannot be written; the old content is still there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     write_atomic(Path(folder) / "last.json", "{}")
        ...     (Path(folder) / "last.json").read_text()
        '{}'
    """
    content = data.encode() if isinstance(data, str) else data
    with replacing(path, needed=len(content)) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, *, needed: int | None = None) -> Iterator[HashingFile]:
    """As :func:`write_atomic`, of a file that is written piece by piece.

    Args:
        path: The file.
        needed: Its size where known, for the error's text.

    Raises:
        StorageError: the file cannot be written; the old content is still there.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     with replacing(Path(folder) / "rows.jsonl") as file:
        ...         file.write(b"{")
        ...         file.write(b"}")
        ...     (Path(folder) / "rows.jsonl").read_text(), file.size
        ('{}', 2)
    """
    temporary = path.with_name(f".{path.name}.tmp-{os.getpid()}")
    try:
        with HashingFile(temporary, needed=needed) as file:
            yield file
        with storing(path, file.size):
            operations.rename(temporary, path)
    except BaseException:
        with suppress(OSError):
            temporary.unlink()
        raise
    sync_folder(path.parent)


def sha256(path: Path) -> str:
    """Hexadecimal sha256 of a file's bytes, read in blocks."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def make_folder(folder: Path, *, parents: bool = True) -> None:
    """Makes a folder and its missing parents, and waits until their names are on the disk.

    Without ``parents`` none is made: the folder of a run that was renamed while the run was in it
    must not be made anew.

    Raises:
        StorageError: one of them cannot be made.
    """
    missing = [p for p in (folder, *(folder.parents if parents else ())) if not p.is_dir()]
    for path in reversed(missing):
        with storing(path):
            try:
                operations.mkdir(path)
            except FileExistsError:  # another process was faster
                if not path.is_dir():
                    raise
        sync_folder(path.parent)


@contextmanager
def new_folder(final: Path, *, replace: bool = False) -> Iterator[Path]:
    """Makes a folder that appears under its name only when it is whole and on the disk.

    Yields a temporary folder beside ``final``. On success every file and folder in it is fsynced,
    it is renamed to ``final``, and the parent is fsynced. On an error it is removed and ``final``
    is not touched.

    Args:
        final: The folder's name; its parent must exist.
        replace: Whether a folder of that name gives way. It is moved aside first and deleted last;
            after a crash between the two :func:`clean_leftovers` moves it back.

    Raises:
        StorageError: something cannot be written, or ``final`` exists and ``replace`` is false.

    Example:
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as parent:
        ...     with new_folder(Path(parent) / "step") as folder:
        ...         write_file(folder / "a", "1")
        ...     sorted(path.name for path in (Path(parent) / "step").iterdir())
        ['a']
    """
    temporary = final.with_name(f".{final.name}.tmp-{os.getpid()}")
    with suppress(FileNotFoundError):
        shutil.rmtree(temporary)  # of this process id: what an earlier attempt could not remove
    with storing(final):
        operations.mkdir(temporary)
    # A lock tells others that it is no left-over; without locks the process id decides.
    held = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        with suppress(OSError):
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield temporary
        _sync_tree(temporary)
        _put_in_place(temporary, final, replace=replace)
    except BaseException as error:
        told = None
        if isinstance(error, OSError) and error.errno in _STORAGE_ERRNOS:
            # A full disk that code met which writes into the folder on its own.
            path = Path(os.fsdecode(error.filename)) if error.filename else temporary
            told = storage_error(path, error)
        shutil.rmtree(temporary, ignore_errors=True)
        if told is not None:
            raise told from error
        raise
    finally:
        os.close(held)


def _sync_tree(folder: Path) -> None:
    """Fsyncs every file below ``folder``, then the folders from the innermost outwards."""
    for root, _, names in os.walk(folder, topdown=False):
        for name in names:
            path = Path(root, name)
            with storing(path, path.lstat().st_size):
                sync_path(path, os.O_NOFOLLOW)
        sync_folder(Path(root))


def _put_in_place(temporary: Path, final: Path, *, replace: bool) -> None:
    if not os.path.lexists(final):
        with storing(final):
            operations.rename(temporary, final)
        sync_folder(final.parent)
        return
    if not replace:
        raise StorageError(
            f"{final} exists already and is not overwritten. Remove or rename it first."
        )
    aside = final.with_name(f".{final.name}.old-{os.getpid()}")
    with storing(final):
        operations.rename(final, aside)
        try:
            operations.rename(temporary, final)
        except OSError:
            os.rename(aside, final)  # past the seam: undoing is not a step that may be failed twice
            raise
    sync_folder(final.parent)
    shutil.rmtree(aside, ignore_errors=True)


def remove_folder(folder: Path) -> None:
    """Deletes a folder so that no half of it is ever seen under its name.

    Raises:
        StorageError: it cannot be renamed; it is then still whole.
    """
    doomed = folder.with_name(f".{folder.name}.tmp-{os.getpid()}")
    with storing(folder):
        operations.rename(folder, doomed)
    shutil.rmtree(doomed, ignore_errors=True)


def clean_leftovers(folder: Path, *, of: str | None = None) -> list[Path]:
    """Removes what dead processes left half-written in a folder, and returns what it removed.

    A folder that had been moved aside and not yet replaced is moved back. In a folder that others
    write in, too, it is only what was to be called ``of``.
    """
    removed = []
    for path, final in leftovers(folder).items():
        if of not in (None, final.name):
            continue
        if path.name.startswith(f".{final.name}.old-") and not os.path.lexists(final):
            with storing(final):
                operations.rename(path, final)
            continue
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)
        removed.append(path)
    return removed


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder, without what is gone meanwhile; links are not followed."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):
            status = path.lstat()
            size += status.st_size if S_ISREG(status.st_mode) else 0
    return size


def leftovers(folder: Path) -> dict[Path, Path]:
    """What dead processes left half-written or half-deleted, and what each was to be or was."""
    found = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = LEFTOVER.fullmatch(path.name)
        if match and not _is_alive(path, int(match["owner"])):
            found[path] = path.with_name(match["final"])
    return found


def _is_alive(path: Path, process: int) -> bool:
    """Whether the owner of a temporary name still works on it.

    A folder is locked while it is written, which also holds where process ids repeat (containers).
    """
    with suppress(OSError):
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY | os.O_NOFOLLOW)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        else:
            return False
        finally:
            os.close(descriptor)
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # it lives, and belongs to another user
        return True
    return process != os.getpid()
