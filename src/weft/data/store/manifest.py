"""What a finished store must contain: the size, time and sha256 of each of its arrays."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from weft.errors import RunError
from weft.runtime.files import sha256, write_atomic

__all__ = ["MANIFEST", "DamagedStoreError", "StoreManifest", "StoredFile"]

FORMAT = 1
MANIFEST = "manifest.json"
LARGEST = 1 << 30  # bytes; the bad rows of a file are in it


class DamagedStoreError(RunError):
    """A store is not what was written; it is to be made again."""


@dataclass(frozen=True)
class StoredFile:
    """One array on the disk."""

    dtype: str
    """As numpy names it."""
    size: int
    """Bytes."""
    mtime_ns: int
    """When it was last changed: a cheap sign that nobody did since."""
    sha256: str
    """Of its bytes, hexadecimal."""


@dataclass(frozen=True)
class StoreManifest:
    """The list of what is in a store."""

    facts: Mapping[str, Any]
    """What it was made of: another source, another store."""
    files: Mapping[str, StoredFile]
    """The arrays by name."""
    summary: Mapping[str, Any]
    """What is known of it besides."""

    @classmethod
    def of(
        cls,
        folder: Path,
        *,
        facts: Mapping[str, Any],
        dtypes: Mapping[str, str],
        digests: Mapping[str, str],
        summary: Mapping[str, Any],
    ) -> "StoreManifest":
        """The manifest of arrays that were just written to ``folder``."""
        files = {}
        for name, dtype in dtypes.items():
            found = (folder / name).stat()
            files[name] = StoredFile(dtype, found.st_size, found.st_mtime_ns, digests[name])
        return cls(facts, files, summary)

    @property
    def size(self) -> int:
        """Bytes of all arrays."""
        return sum(file.size for file in self.files.values())

    def dtype(self, name: str) -> np.dtype[Any]:
        """The type of one array."""
        return np.dtype(self.files[name].dtype)

    def write(self, folder: Path) -> None:
        """Writes it with the digest of its own bytes, atomically."""
        body = json.dumps(asdict(self) | {"format": FORMAT}, allow_nan=False)
        digest = hashlib.sha256(body.encode()).hexdigest()
        write_atomic(folder / MANIFEST, f"{body}\n{digest}\n")

    @classmethod
    def read(cls, folder: Path) -> "StoreManifest":
        """Reads what ``write`` wrote.

        Raises:
            DamagedStoreError: It is missing, was changed, or is of another format.
        """
        path = folder / MANIFEST
        try:
            if path.stat().st_size > LARGEST:
                raise DamagedStoreError(f"{path} has more than {LARGEST:,} bytes")
            body, _, digest = path.read_bytes().rstrip(b"\n").rpartition(b"\n")
        except OSError as error:
            raise DamagedStoreError(f"{path} cannot be read: {error.strerror}") from None
        if hashlib.sha256(body).hexdigest().encode() != digest:
            raise DamagedStoreError(f"{path}: its bytes were changed")
        content = json.loads(body)
        if content.pop("format") != FORMAT:
            raise DamagedStoreError(f"{path}: another version of weft wrote it")
        files = {name: StoredFile(**file) for name, file in content.pop("files").items()}
        return cls(files=files, **content)

    def verify(self, folder: Path, *, whole: bool) -> None:
        """Compares the files with what is listed: sizes and times, or every byte.

        Raises:
            DamagedStoreError: One is missing, or differs.
        """
        doubted = whole
        for name, file in self.files.items():
            path = folder / name
            try:
                found = path.stat()
            except OSError as error:
                raise DamagedStoreError(f"{path} cannot be read: {error.strerror}") from None
            if found.st_size != file.size:
                raise DamagedStoreError(
                    f"{path} has {found.st_size:,} bytes, and {file.size:,} were written"
                )
            doubted |= found.st_mtime_ns != file.mtime_ns
        for name, file in self.files.items():
            if doubted and sha256(folder / name) != file.sha256:
                raise DamagedStoreError(f"{folder / name}: its bytes were changed")
