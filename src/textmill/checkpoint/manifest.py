"""What a checkpoint folder must contain, byte for byte, and what points to it."""

import hashlib
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from typing_extensions import override

from textmill.checkpoint.layout import MANIFEST, TEXT, folder_name, is_folder_name
from textmill.errors import CheckpointError
from textmill.runtime.files import VERSION, check_version, read_all
from textmill.runtime.sealed import FileEntry, SealedFiles, is_count, seal, unseal

FORMAT = 1
"""Version of the layout of a checkpoint folder."""
RUN_NAME = re.compile(r"[0-9a-f]{16}")
"""The name of a run."""

_MAX_SEALED = 16 << 20


@dataclass(frozen=True, kw_only=True)
class Manifest(SealedFiles):
    """The list of everything in a checkpoint folder but itself."""

    NAME: ClassVar[str] = MANIFEST
    FORMAT: ClassVar[int] = FORMAT
    LARGEST: ClassVar[int] = _MAX_SEALED
    OPTIONAL_FOLDERS: ClassVar[Collection[str]] = (TEXT,)
    ERROR: ClassVar[type[Exception]] = CheckpointError

    step: int
    """Optimizer steps taken."""
    serial: int
    """Number of the save in its run, from 1: the newest has the largest, whatever the steps say."""
    versions: Mapping[str, str]
    """Of the packages that wrote it."""
    run: str | None = None
    """The name of the run it is of; None of one that has none."""

    @override
    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads and checks a folder's ``manifest.json``."""
        manifest = super().read(folder)
        if is_folder_name(folder.name) and folder.name != folder_name(manifest.step):
            raise CheckpointError(f"{MANIFEST}: it is of step {manifest.step}")
        return manifest

    @override
    @classmethod
    def _problems(cls, content: Mapping[str, Any]) -> Iterator[str]:
        for name in ("step", "serial"):
            if not is_count(content[name]):
                yield f"{name} is not a count"
        versions, run = content["versions"], content["run"]
        if not isinstance(versions, dict) or any(type(v) is not str for v in versions.values()):
            yield "versions are not text by package"
        if run is not None and not (isinstance(run, str) and RUN_NAME.fullmatch(run)):
            yield "run is not the name of one"

    @property
    def text(self) -> dict[str, FileEntry]:
        """The files of the text processor, by their names in the checkpoint."""
        return {n: entry for n, entry in self.files.items() if n.startswith(f"{TEXT}/")}

    def unusable(self, folder: Path, names: Collection[str] | None = None) -> list[str]:
        """What makes a checkpoint unusable: a file that differs from the list, or a foreign thing.

        A plain file beside ours that nothing reads (a person's note) is no damage; one in
        ``text/``, or a link, is.
        """
        foreign = [
            f"{name}: not listed in {MANIFEST}"
            for name in self.unlisted(folder)
            if "/" in name or (folder / name).is_symlink() or not (folder / name).is_file()
        ]
        return foreign or self.damage(folder, names)

    def verify_text(self, folder: Path) -> bool:
        """Refuses text of which a byte is not as saved; returns whether there is any."""
        text = self.text
        if problems := self.unusable(folder, text):
            raise CheckpointError("; ".join(problems[:3]))
        return bool(text)


def read_small(path: Path) -> bytes:
    """Reads a regular file of at most 16 MiB, following no link."""
    return read_all(path, _MAX_SEALED, CheckpointError)


def manifest_of(checkpoint: Path) -> tuple[Manifest, str]:
    """The manifest, and its sha256, which tells a checkpoint from every other."""
    data = read_small(checkpoint / MANIFEST)
    return Manifest.from_bytes(data), hashlib.sha256(data).hexdigest()


@dataclass(frozen=True, kw_only=True)
class Pointer:
    """The content of ``last.json`` or ``best.json``: which checkpoint is meant."""

    step: int
    """Optimizer steps taken."""
    folder: str
    """Name of the checkpoint, beside the pointer."""
    serial: int
    """Number of the save; a checkpoint with a larger one was renamed after this was written."""
    manifest_sha256: str
    """Of the bytes of its ``manifest.json``."""
    name: str
    """Of the pointer itself: ``best.json`` or ``last.json``."""

    @classmethod
    def to(cls, path: Path, name: str) -> "Pointer":
        """The pointer of a name to a checkpoint folder."""
        manifest, digest = manifest_of(path)
        return cls(
            step=manifest.step,
            folder=path.name,
            serial=manifest.serial,
            manifest_sha256=digest,
            name=name,
        )

    @classmethod
    def read(cls, path: Path) -> "Pointer | None":
        """Reads a pointer file; None when there is none."""
        if not path.is_file() and not path.is_symlink():
            return None
        content = unseal(read_small(path), path.name, CheckpointError)
        check_version(content, FORMAT, path.name, CheckpointError)
        del content[VERSION]
        try:
            pointer = cls(**content)
        except TypeError:
            raise CheckpointError(f"{path.name}: it does not point to a checkpoint") from None
        kinds = {name: type(value) for name, value in asdict(pointer).items()}
        wanted = {"step": int, "folder": str, "serial": int, "manifest_sha256": str, "name": str}
        if kinds != wanted or not is_folder_name(pointer.folder):
            raise CheckpointError(f"{path.name}: it does not point to a checkpoint")
        if pointer.name != path.name:
            raise CheckpointError(f"{path.name}: it was written as {pointer.name[:80]}")
        return pointer

    def fits(self, path: Path) -> bool:
        """Whether a folder is the checkpoint that is meant, or one saved since under its name."""
        manifest, digest = manifest_of(path)
        return manifest.serial > self.serial or digest == self.manifest_sha256

    def to_bytes(self) -> bytes:
        """The content of the file."""
        return seal({VERSION: FORMAT, **asdict(self)})
