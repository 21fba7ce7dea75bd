"""Folders that are made once of some data, and found again: its rows, and their ids.

A folder is made under another name and renamed when it is whole; what a crash left half-made is
begun anew. Its name is a digest of what it is made of. One process makes it; others wait for it.
"""

import hashlib
import json
import logging
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from textmill.errors import InUseError, RunError, StorageError
from textmill.runtime.files import (
    cache_folder,
    clean_leftovers,
    make_folder,
    new_folder,
    write_file,
)
from textmill.runtime.lock import Lock
from textmill.runtime.sealed import SealedFiles

LOG = logging.getLogger("textmill")

MANIFEST = "manifest.json"
WAIT = 0.1  # seconds between two looks at a lock


class DamagedStoreError(RunError):
    """A store is not what was written; it is to be made again."""


@dataclass(frozen=True, kw_only=True)
class StoreManifest(SealedFiles):
    """The list of what is in a store."""

    NAME: ClassVar[str] = MANIFEST
    LARGEST: ClassVar[int] = 1 << 30  # the bad rows of a file are in it
    ERROR: ClassVar[type[Exception]] = DamagedStoreError
    OWN: ClassVar[bool] = True

    facts: Mapping[str, Any]
    """What it was made of: another source, another store."""
    summary: Mapping[str, Any]
    """What is known of it besides."""

    @property
    def size(self) -> int:
        return sum(file.size for file in self.files.values())

    @classmethod
    def of(cls, folder: Path, facts: Mapping[str, Any], *, whole: bool = False) -> Self | None:
        """That of a store; None where there is none."""
        if not folder.is_dir():
            return None
        try:
            found = cls.read(folder)
        except DamagedStoreError as error:
            raise DamagedStoreError(f"{folder}/{error}") from None
        if found.facts != json.loads(json.dumps(dict(facts))):
            raise DamagedStoreError(f"{folder / MANIFEST}: it was made of something else")
        for name, file in found.files.items():
            path = folder / name
            if not path.is_file() or path.stat().st_size != file.size:
                raise DamagedStoreError(f"{path}: it is missing, or has another size")
        for problem in found.damage(folder) if whole else ():
            raise DamagedStoreError(f"{folder}/{problem}")
        return found


def store_folder(kind: str, facts: Mapping[str, Any]) -> Path:
    """The store that is made of ``facts``, whether it is there yet or not."""
    digest = hashlib.sha256(json.dumps(dict(facts), sort_keys=True).encode()).hexdigest()
    return cache_folder() / kind / digest[:32]


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Holds the lock of a store's name; waits, saying so once, while another process has it.

    What a process that was killed left half-made of that name is deleted.
    """
    place = folder.with_name(f"{folder.name}.lock")
    try:
        make_folder(place)
    except StorageError as error:
        raise StorageError(
            f"{error} The environment variable TEXTMILL_CACHE names the folder that stores are "
            f"in; now it is {cache_folder()}."
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
        clean_leftovers(folder.parent, of=folder.name)
        yield
    finally:
        lock.__exit__(None, None, None)


@contextmanager
def made_store(folder: Path, facts: Mapping[str, Any]) -> Iterator[tuple[Path, dict[str, Any]]]:
    """A store that is being made: its temporary folder, and what is to be known of it besides.

    It has its name when the block has ended; a damaged one gives way. To be used while ``locked``.
    """
    summary = dict[str, Any]()
    with new_folder(folder, replace=True) as part:
        yield part, summary
        entries = StoreManifest.entries(part)
        manifest = StoreManifest(facts=dict(facts), files=entries, summary=summary)
        write_file(part / MANIFEST, manifest.to_bytes())
