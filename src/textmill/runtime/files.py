"""Files and folders that are whole or not there, also after a power cut; and bounded reading.

Writing has one order: a temporary name in the same folder, fsync of the file, rename, fsync of the
folder. The calls on the disk are in :mod:`textmill.runtime.disk`. What is read may come from a
stranger: JSON of run folders has a size, a depth and a number of items that are checked.
"""

import fcntl
import hashlib
import json
import math
import os
import re
import shutil
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from errno import EDQUOT, EFBIG, EIO, ENOSPC, EROFS
from io import BufferedReader
from pathlib import Path
from typing import Any

from textmill.errors import InUseError, StorageError
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


def cache_folder() -> Path:
    """What is kept for other runs: ``$TEXTMILL_CACHE``, else ``textmill`` in the user's cache."""
    named = os.environ.get("TEXTMILL_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textmill"


# -- writing


def write_file(path: Path, data: bytes | str) -> None:
    """Writes a whole file and waits until it is on the disk; not atomic: for ``new_folder``."""
    content = data.encode() if isinstance(data, str) else data
    with HashingFile(path, needed=len(content)) as file:
        file.write(content)


def write_atomic(path: Path, data: bytes | str) -> None:
    """Replaces a file so that any reader, also after a crash, sees all old or all new content."""
    content = data.encode() if isinstance(data, str) else data
    with replacing(path, needed=len(content)) as file:
        file.write(content)


@contextmanager
def replacing(path: Path, *, needed: int | None = None) -> Iterator[HashingFile]:
    """As :func:`write_atomic`, for a file that is written piece by piece.

    ``needed`` is its size if it is known, for the error's text.
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
def new_folder(final: Path, *, replace: bool = False, resume: bool = False) -> Iterator[Path]:
    """Makes a folder that appears under its name only when it is whole and on the disk.

    Yields a temporary folder beside ``final``. On success everything in it is fsynced and it is
    renamed to ``final``. On an error it is removed and ``final`` is not touched. With ``replace``
    an existing folder gives way. It is moved aside first and deleted last; after a crash between
    the two :func:`clean_leftovers` moves it back. With ``resume`` the temporary folder, which is
    then ``.NAME.part``, stays after an error, and the next call yields it as it is.
    """
    temporary = final.with_name(f".{final.name}.{'part' if resume else f'tmp-{os.getpid()}'}")
    if not resume:
        with suppress(FileNotFoundError):
            shutil.rmtree(temporary)  # of this process id: what an earlier attempt left
    if not (resume and temporary.is_dir() and not temporary.is_symlink()):
        with storing(final):
            operations.mkdir(temporary)
    # A lock tells others that it is not left over; without locks the process id decides.
    held = os.open(temporary, os.O_RDONLY | os.O_CLOEXEC | os.O_DIRECTORY)
    try:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise InUseError(f"Another process makes {final}. Wait for it to end.") from None
        except OSError:
            pass
        yield temporary
        for root, _, names in os.walk(temporary, topdown=False):
            for name in names:
                path = Path(root, name)
                with storing(path, path.lstat().st_size):
                    sync_path(path, os.O_NOFOLLOW)
            sync_folder(Path(root))
        _put_in_place(temporary, final, replace=replace)
    except BaseException as error:
        plain = None
        if isinstance(error, OSError) and error.errno in _STORAGE_ERRNOS:
            # A full disk, met by code that writes into the folder on its own.
            path = Path(os.fsdecode(error.filename)) if error.filename else temporary
            plain = storage_error(path, error)  # it measures what is free: before the deletion
        if not resume:
            shutil.rmtree(temporary, ignore_errors=True)
        if plain is not None:
            raise plain from error
        raise
    finally:
        os.close(held)


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
    """Deletes a folder so that no half of it is ever seen under its name."""
    to_delete = folder.with_name(f".{folder.name}.tmp-{os.getpid()}")
    with storing(folder):
        operations.rename(folder, to_delete)
    shutil.rmtree(to_delete, ignore_errors=True)


def clean_leftovers(folder: Path, *, of: str | None = None) -> None:
    """Removes what dead processes left half-written in a folder.

    A folder that was moved aside and not yet replaced is moved back. If others write in the folder,
    too, ``of`` limits the work to temporary files of that final name.
    """
    for path, final in leftovers(folder).items():
        if of not in (None, final.name):
            continue
        if path.name.startswith(f".{final.name}.old-") and not os.path.lexists(final):
            with storing(final):
                operations.rename(path, final)
        elif path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)
        else:
            path.unlink(missing_ok=True)


def size_of(folder: Path) -> int:
    """Bytes of the files below a folder; links are not followed."""
    size = 0
    for path in folder.rglob("*"):
        with suppress(OSError):  # deleted meanwhile
            status = path.lstat()
            size += status.st_size if stat.S_ISREG(status.st_mode) else 0
    return size


def leftovers(folder: Path) -> dict[Path, Path]:
    """Temporary files and folders of dead processes, each with its final path."""
    finals = {}
    for path in sorted(folder.iterdir()) if folder.is_dir() else ():
        match = LEFTOVER.fullmatch(path.name)
        if match and not _is_alive(path, int(match["owner"])):
            finals[path] = path.with_name(match["final"])
    return finals


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


# -- reading

MOST_DEPTH = 256
"""Levels of a JSON document; the state of a run has some 10, and may have 64 of its own."""
MOST_ITEMS = 1 << 20
"""Lists, mappings and commas of a JSON document: parsed in half a second and 100 MB at most."""
VERSION = "format_version"
"""The key of a document's version, which changes when the meaning of the document does."""
_MOST_BITS = 256  # of an integer; a random generator's have 128

Refusal = Callable[[str], Exception]
"""Makes the caller's error from a reason, which begins with the file's name."""


@contextmanager
def opened(
    path: Path, refuse: Refusal, *, name: str | None = None, links: bool = False
) -> Iterator[tuple[BufferedReader, int]]:
    """A regular file, open, and its size in bytes; a pipe or a device does not hang.

    An error calls it ``name``, by default the last part of its path. A symbolic link is followed
    only with ``links``.
    """
    name = path.name if name is None else name
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise refuse(f"{name}: missing") from None
    except OSError as error:
        reason = "a symbolic link" if not links and path.is_symlink() else error.strerror
        raise refuse(f"{name}: cannot be read: {reason}") from error
    try:
        status = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise refuse(f"{name}: not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file, status.st_size
    except OSError as error:  # a damaged disk
        raise refuse(f"{name}: cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def read_all(
    path: Path, largest: int, refuse: Refusal, *, name: str | None = None, links: bool = False
) -> bytes:
    """The content of a regular file of at most ``largest`` bytes; else as :func:`opened`."""
    with opened(path, refuse, name=name, links=links) as (file, size):
        if size > largest:
            name = path.name if name is None else name
            raise refuse(f"{name}: {size:,} bytes are more than the {largest:,} allowed")
        return file.read(size)  # room for as much is made, and ``largest`` may be a GB


def parse_json(data: bytes, name: str, refuse: Refusal, *, nan: bool = False) -> Any:
    """Reads JSON of bounded depth, number of items and size of numbers, without duplicate keys.

    With ``nan``, NaN and infinities are allowed.
    """

    def no_number(text: str) -> float:
        raise ValueError(f"{text[:20]}{'…' * (len(text) > 20)} is not a number here")

    def whole(digits: str) -> int:
        fits = len(digits) <= _MOST_BITS and (number := int(digits)).bit_length() <= _MOST_BITS
        return number if fits else int(no_number(digits))

    def finite(digits: str) -> float:
        number = float(digits)
        return number if math.isfinite(number) else no_number(digits)

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        if len(result) != len(pairs):
            raise ValueError("a key is given twice")
        return result

    if (items := count_items(data)) > MOST_ITEMS:
        raise refuse(f"{name}: {items:,} items are more than the {MOST_ITEMS:,} allowed")
    try:
        content = json.loads(
            data,
            parse_constant=float if nan else no_number,
            parse_int=whole,
            parse_float=float if nan else finite,
            object_pairs_hook=unique,
        )
    except RecursionError:
        raise refuse(f"{name}: nested too deeply") from None
    except ValueError as error:
        raise refuse(f"{name}: not readable as JSON: {error}") from error
    level = [content] if isinstance(content, dict | list) else []
    for _ in range(MOST_DEPTH):
        children = [v.values() if isinstance(v, dict) else v for v in level]
        level = [v for values in children for v in values if isinstance(v, dict | list)]
    if level:
        raise refuse(f"{name}: nested too deeply")
    return content


def check_version(content: object, version: int, name: str, refuse: Refusal) -> None:
    """Refuses a document of another format version."""
    found = content.get(VERSION) if isinstance(content, Mapping) else None
    if type(found) is not int or found != version:
        number = "no format_version" if found is None else f"format_version {found!r:.40}"
        raise refuse(f"{name} has {number}, and this textmill reads {version}")


def count_items(data: bytes) -> int:
    """An upper bound, within one, of the number of values in a JSON document."""
    return sum(data.count(sign) for sign in (b"[", b"{", b","))
