"""``last.json`` and ``best.json``: which checkpoint is meant, and the digest of its manifest."""

import hashlib
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.checkpoint.layout import MANIFEST, is_folder_name
from weft.checkpoint.manifest import Manifest, read_small
from weft.errors import CheckpointError
from weft.runtime.sealed import seal, unseal

__all__ = ["Pointer"]


@dataclass(frozen=True, kw_only=True)
class Pointer:
    """The content of a pointer file.

    Example:
        >>> Pointer.read(Path("/no/such/last.json")) is None
        True
    """

    step: int
    """Optimizer steps taken."""
    folder: str
    """Name of the checkpoint, beside the pointer."""
    serial: int
    """Number of the save; a checkpoint with a larger one was renamed after this was written."""
    manifest_sha256: str
    """Of the bytes of its ``manifest.json``."""
    name: str | None = None
    """Of the pointer itself, ``best.json``; None in one that was written before it was kept."""

    @classmethod
    def to(cls, path: Path, name: str) -> "Pointer":
        """The pointer of a name to a checkpoint folder."""
        data = read_small(path / MANIFEST)
        manifest = Manifest.from_bytes(data)
        return cls(
            step=manifest.step,
            folder=path.name,
            serial=manifest.serial,
            manifest_sha256=hashlib.sha256(data).hexdigest(),
            name=name,
        )

    @classmethod
    def read(cls, path: Path) -> "Pointer | None":
        """Reads a pointer file; None when there is none.

        Raises:
            CheckpointError: it is damaged, not a pointer, or the other one under this name.
        """
        if not path.is_file() and not path.is_symlink():
            return None
        content = unseal(read_small(path), path.name, CheckpointError)
        try:
            pointer = cls(**content)
        except TypeError:
            raise CheckpointError(f"{path.name}: it does not point to a checkpoint") from None
        kinds = {name: type(value) for name, value in asdict(pointer).items()}
        wanted = {"step": int, "folder": str, "serial": int, "manifest_sha256": str}
        wanted["name"] = str if "name" in content else type(None)
        if kinds != wanted or not is_folder_name(pointer.folder):
            raise CheckpointError(f"{path.name}: it does not point to a checkpoint")
        if pointer.name not in (None, path.name):
            raise CheckpointError(f"{path.name}: it was written as {pointer.name[:80]}")
        return pointer

    def fits(self, path: Path) -> bool:
        """Whether a folder is the checkpoint that is meant, or one saved since under its name.

        Raises:
            CheckpointError: its manifest cannot be read.
        """
        data = read_small(path / MANIFEST)
        since = Manifest.from_bytes(data).serial > self.serial  # and not yet pointed to
        return since or hashlib.sha256(data).hexdigest() == self.manifest_sha256

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return seal(asdict(self))
