"""``last.json`` and ``best.json``: which checkpoint is meant, and the digest of its manifest."""

import hashlib
import re
from dataclasses import asdict, dataclass
from pathlib import Path

from weft.checkpoint.manifest import MANIFEST, Manifest, read_small, seal, unseal
from weft.errors import CheckpointError

__all__ = ["FOLDER", "Pointer"]

FOLDER = re.compile(r"step-(\d{8,18})")
"""The name of a checkpoint."""


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

    @classmethod
    def to(cls, path: Path) -> "Pointer":
        """The pointer to a checkpoint folder."""
        data = read_small(path / MANIFEST)
        manifest = Manifest.from_bytes(data)
        return cls(
            step=manifest.step,
            folder=path.name,
            serial=manifest.serial,
            manifest_sha256=hashlib.sha256(data).hexdigest(),
        )

    @classmethod
    def read(cls, path: Path) -> "Pointer | None":
        """Reads a pointer file; None when there is none.

        Raises:
            CheckpointError: it is damaged or not a pointer.
        """
        if not path.is_file() and not path.is_symlink():
            return None
        content = unseal(read_small(path), path.name)
        try:
            pointer = cls(**content)
        except TypeError:
            raise CheckpointError(f"{path.name}: it does not point to a checkpoint") from None
        kinds = {name: type(value) for name, value in asdict(pointer).items()}
        wanted = {"step": int, "folder": str, "serial": int, "manifest_sha256": str}
        if kinds != wanted or not FOLDER.fullmatch(pointer.folder):
            raise CheckpointError(f"{path.name}: it does not point to a checkpoint")
        return pointer

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return seal(asdict(self))
