"""What a finished store must contain: the size, time and sha256 of each of its arrays."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from typing_extensions import override

from weft.errors import RunError
from weft.runtime.sealed import FileEntry, SealedFiles, unseal

__all__ = ["MANIFEST", "DamagedStoreError", "StoreManifest", "StoredFile"]

MANIFEST = "manifest.json"


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
        """The content, of whatever size: nobody else writes a store.

        Stores of before 2026-11-22 have their digest in a line after a body of one line.
        """
        body, _, digest = data.removesuffix(b"\n").rpartition(b"\n")
        if digest != b"}" and hashlib.sha256(body).hexdigest().encode() == digest:
            older: dict[str, Any] = json.loads(body)
            return older
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
