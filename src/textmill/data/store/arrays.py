"""A folder of arrays that is written in chunks, goes on after a crash, and is verified when opened.

While it is made, the arrays are in ``<name>.part``; each line of its ``progress.jsonl`` says how
much of them is whole and on the disk. What is finished is renamed to ``<name>``, and its
``manifest.json`` has the size and sha256 of each array. One process writes; others wait for it.
"""

import hashlib
import json
import logging
import os
import shutil
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import InUseError, RunError, StorageError
from textmill.runtime.disk import open_in_place, operations, storing, sync_folder, write_all
from textmill.runtime.files import make_folder, remove_folder, write_atomic, write_file
from textmill.runtime.jsonl_log import JsonlLog
from textmill.runtime.lock import Lock
from textmill.runtime.sealed import FileEntry, SealedFiles, unseal

LOG = logging.getLogger("textmill")

MANIFEST = "manifest.json"
PROGRESS = "progress.jsonl"
WAIT = 0.1  # seconds between two looks at a lock
BLOCK = 1 << 22


class DamagedStoreError(RunError):
    """A store is not what was written; it is to be made again."""


@dataclass(frozen=True, kw_only=True)
class StoredFile(FileEntry):
    """One array on the disk."""

    dtype: str
    """As numpy names it."""
    mtime_ns: int
    """When it was last changed: a cheap sign that nobody did since."""


@dataclass(frozen=True, kw_only=True)
class StoreManifest(SealedFiles):
    """The list of what is in a store."""

    NAME: ClassVar[str] = MANIFEST
    LARGEST: ClassVar[int] = 1 << 30  # the bad rows of a file are in it
    ENTRY: ClassVar[type[FileEntry]] = StoredFile
    ERROR: ClassVar[type[Exception]] = DamagedStoreError

    facts: Mapping[str, Any]
    """What it was made of: another source, another store."""
    files: Mapping[str, StoredFile]
    """The arrays by name."""
    summary: Mapping[str, Any]
    """What is known of it besides."""

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(file.size for file in self.files.values())

    @override
    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads the manifest of a store.

        Raises:
            DamagedStoreError: It is missing, was changed, or is of another format.
        """
        try:
            return super().read(folder)
        except DamagedStoreError as error:
            raise DamagedStoreError(f"{folder}/{error}") from None

    @override
    @classmethod
    def _unsealed(cls, data: bytes) -> dict[str, Any]:
        """The content, of whatever size: nobody else writes a store."""
        return unseal(data, cls.NAME, cls.ERROR, own=True)

    def verify(self, folder: Path, *, whole: bool) -> None:
        """Compares the files with what is listed: sizes and times, or every byte.

        Raises:
            DamagedStoreError: One is missing, or differs.
        """
        try:
            found = {name: (folder / name).stat() for name in self.files}
        except OSError:
            found = {}
        left = {name: (file.size, file.mtime_ns) for name, file in self.files.items()}
        doubted = whole or left != {n: (f.st_size, f.st_mtime_ns) for n, f in found.items()}
        for problem in self.damage(folder) if doubted else ():
            raise DamagedStoreError(f"{folder}/{problem}")


def store_root() -> Path:
    """Where stores are kept: ``$TEXTMILL_CACHE``, else ``textmill`` in the user's cache folder.

    >>> import os
    >>> os.environ["TEXTMILL_CACHE"] = "/tmp/kept"
    >>> store_root().as_posix()
    '/tmp/kept'
    >>> del os.environ["TEXTMILL_CACHE"]
    """
    named = os.environ.get("TEXTMILL_CACHE")
    if named:
        return Path(named)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "textmill"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a store's name; waits, saying so once, while another process has it.

    What a process that was killed had yet to delete of that name is deleted.

    Raises:
        StorageError: The folder of the stores cannot be written.
    """
    place = folder.with_name(f"{folder.name}.lock")
    try:
        make_folder(place)
    except StorageError as error:
        raise StorageError(
            f"{error} The environment variable TEXTMILL_CACHE names the folder that stores are "
            f"in; now it is {store_root()}."
        ) from error
    lock, told = Lock(place), False
    while True:
        try:
            lock.__enter__()
            break
        except InUseError as error:
            if not told:
                owner = str(error).partition(" is in use by ")[2].partition(". ")[0]
                LOG.info("Waiting for %s, which is writing %s.", owner, folder)
                told = True
            time.sleep(WAIT)
    try:
        for doomed in folder.parent.glob(f".{folder.name}.tmp-*"):  # of a process that was killed
            shutil.rmtree(doomed, ignore_errors=True)
        yield
    finally:
        lock.__exit__(None, None, None)


def open_arrays(
    folder: Path, facts: Mapping[str, Any], *, whole: bool = False
) -> tuple[StoreManifest, dict[str, NDArray[Any]]] | None:
    """Maps the arrays of a finished store; None where there is none.

    Args:
        folder: The store.
        facts: What it must have been made of.
        whole: Whether every byte is compared with the manifest, and not sizes and times alone; it
            is where a time differs (a copied folder), too.

    Raises:
        DamagedStoreError: It is not what was written, or not of ``facts``.
    """
    if not folder.is_dir():
        return None
    manifest = StoreManifest.read(folder)
    if manifest.facts != json.loads(json.dumps(dict(facts))):
        raise DamagedStoreError(f"{folder / MANIFEST}: it was made of something else")
    manifest.verify(folder, whole=whole)
    arrays: dict[str, NDArray[Any]] = {}
    for name, file in manifest.files.items():
        # A plain view: each operation on a memmap object costs some microseconds more.
        mapped: Any = np.memmap(folder / name, file.dtype, "r") if file.size else []
        arrays[name] = np.asarray(mapped, file.dtype)
    return manifest, arrays


class ArrayWriter:
    """Appends to the arrays of a store that is being made; goes on where a dead process stopped.

    To be used while the store is ``locked``.

    Args:
        folder: The finished store's name.
        facts: What it is made of; a part of other facts is thrown away.
        dtypes: Type of each array, as numpy names it.
        resume: Whether to go on with a part; else it is thrown away.

    Attributes:
        place: What was given with the last whole chunk; None at the beginning.
        sizes: Bytes of each array.
    """

    def __init__(
        self,
        folder: Path,
        facts: Mapping[str, Any],
        dtypes: Mapping[str, str],
        *,
        resume: bool = True,
    ) -> None:
        self.folder, self.part = folder, folder.with_name(f"{folder.name}.part")
        self.facts, self.dtypes = json.loads(json.dumps(dict(facts))), dict(dtypes)
        self._head = {"facts": self.facts, "dtypes": self.dtypes}
        self.place: Any = None
        self.sizes = dict.fromkeys(dtypes, 0)
        self._hashes = {name: hashlib.sha256() for name in dtypes}
        self._files: dict[str, int] = {}
        found = self._found() if resume else None
        if found is None:
            shutil.rmtree(self.part, ignore_errors=True)
            make_folder(self.part)
            write_file(self.part / "facts.json", json.dumps(self._head))
        else:
            self.place, self.sizes = found["place"], found["sizes"]
        self._log = JsonlLog(self.part / PROGRESS)
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def _found(self) -> dict[str, Any] | None:
        """The last whole chunk of a part of the same facts."""
        try:
            if json.loads((self.part / "facts.json").read_bytes()) != self._head:
                return None
            lines = (self.part / PROGRESS).read_bytes().rpartition(b"\n")[0].split(b"\n")
            last: dict[str, Any] = json.loads(lines[-1])
            for name in self.dtypes:
                if (self.part / name).stat().st_size < last["sizes"][name]:
                    return None
        except (OSError, ValueError, KeyError, TypeError):
            return None
        return last

    def _open(self) -> None:
        for name, size in self.sizes.items():
            path = self.part / name
            with storing(path):
                self._files[name] = open_in_place(path, os.O_RDWR | os.O_CREAT)
                operations.truncate(self._files[name], size)
            done = 0
            while done < size:  # what is kept is hashed again: a manifest is of what is on the disk
                block = os.pread(self._files[name], min(BLOCK, size - done), done)
                self._hashes[name].update(block)
                done += len(block)

    def append(self, arrays: Mapping[str, NDArray[Any]], place: Any) -> None:
        """Adds to every array and waits until it is on the disk; then the chunk counts.

        Raises:
            StorageError: It could not be written; the store stays as it was before the chunk.
        """
        for name, values in arrays.items():
            data = np.ascontiguousarray(values, dtype=self.dtypes[name]).data.cast("B")
            path = self.part / name
            with storing(path, len(data)):
                write_all(self._files[name], data, self.sizes[name])
                operations.fsync(self._files[name])
            self._hashes[name].update(data)
            self.sizes[name] += len(data)
        self.place = place
        self._log.append({"sizes": self.sizes, "place": place})
        self._log.sync()

    def finish(self, summary: Mapping[str, Any]) -> None:
        """Writes the manifest and gives the store its name, where a damaged one gives way.

        Args:
            summary: What is to be known of the store besides its arrays, as JSON.
        """
        self.close()
        for name in ("facts.json", PROGRESS):
            with suppress(FileNotFoundError):
                (self.part / name).unlink()
        files = {name: self._entry(name) for name in self.dtypes}
        manifest = StoreManifest(facts=self.facts, files=files, summary=dict(summary))
        write_atomic(self.part / MANIFEST, manifest.to_bytes())
        sync_folder(self.part)
        if self.folder.exists():
            remove_folder(self.folder)
        with storing(self.folder):
            operations.rename(self.part, self.folder)
        sync_folder(self.folder.parent)

    def _entry(self, name: str) -> StoredFile:
        found = (self.part / name).stat()
        return StoredFile(
            size=found.st_size,
            sha256=self._hashes[name].hexdigest(),
            dtype=self.dtypes[name],
            mtime_ns=found.st_mtime_ns,
        )

    def close(self) -> None:
        """Lets go of the files; what was appended stays for the next attempt."""
        for descriptor in self._files.values():
            os.close(descriptor)
        self._files = {}
        self._log.close()


def check_room(folder: Path, needed: int) -> None:
    """Raises before anything is written where the disk has too little room.

    Raises:
        StorageError: Fewer than ``needed`` bytes are free.
    """
    free = operations.free(folder)
    if free < needed:
        raise StorageError(
            f"{folder} needs about {needed:,} bytes, and {free:,} are free. Make room, or name "
            "another folder with the environment variable TEXTMILL_CACHE."
        )
