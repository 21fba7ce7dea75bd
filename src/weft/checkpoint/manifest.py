"""What a checkpoint folder must contain, byte for byte, and the check that it does."""

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, Self

from typing_extensions import override

from weft.checkpoint.layout import MANIFEST, TENSORS, TEXT, folder_name, is_folder_name
from weft.errors import CheckpointError
from weft.runtime.bounded_files import read_all
from weft.runtime.sealed import FileEntry, SealedFiles, is_count

__all__ = ["FORMAT", "RUN_NAME", "Manifest", "read_small", "verify"]

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
        """Reads and checks a folder's ``manifest.json``.

        Raises:
            CheckpointError: it is missing, damaged or hostile, or of another step than the folder's
                name says.
        """
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
        versions, run = content["versions"], content.get("run")
        if not isinstance(versions, dict) or any(type(v) is not str for v in versions.values()):
            yield "versions are not text by package"
        if run is not None and not (isinstance(run, str) and RUN_NAME.fullmatch(run)):
            yield "run is not the name of one"

    @property
    def text(self) -> dict[str, FileEntry]:
        """The files of the text processor, by their names in the checkpoint."""
        return {n: entry for n, entry in self.files.items() if n.startswith(f"{TEXT}/")}

    def unusable(
        self,
        folder: Path,
        names: Collection[str] | None = None,
        *,
        largest: int | None = None,
    ) -> list[str]:
        """What makes a checkpoint unusable: a file that differs from the list, or a foreign thing.

        A plain file beside ours that nothing reads (a person's note) is no damage; one in
        ``text/``, or a link, is.

        Args:
            folder: The checkpoint.
            names: The listed files that are looked at; None: all.
            largest: Bytes that no file of tensors may exceed; None: any size.
        """
        for name, entry in self.files.items():
            if largest is not None and name.endswith(TENSORS) and entry.size > largest:
                return [
                    f"{name}: {entry.size:,} bytes are more than the {largest:,} its model can need"
                ]
        foreign = [
            f"{name}: not listed in {MANIFEST}"
            for name in self.unlisted(folder)
            if "/" in name or (folder / name).is_symlink() or not (folder / name).is_file()
        ]
        return foreign or self.damage(folder, names)


def read_small(path: Path) -> bytes:
    """Reads a regular file of at most 16 MiB, following no link.

    Raises:
        CheckpointError: it is missing, too large, or not a regular file.
    """
    return read_all(path, _MAX_SEALED, CheckpointError)


def verify(folder: Path) -> list[str]:
    """Everything that is wrong with a checkpoint folder, one line each; nothing when it is good.

    Example:
        >>> verify(Path("/no/such/step-00000001"))
        ['manifest.json: missing']
    """
    try:
        manifest = Manifest.read(folder)
    except CheckpointError as error:
        return [str(error)]
    extra = [f"{name}: not listed in {MANIFEST}" for name in manifest.unlisted(folder)]
    return [*manifest.unusable(folder), *extra]
