"""What a checkpoint folder must contain, byte for byte, and the check that it does.

``manifest.json``, ``last.json`` and ``best.json`` end with a digest of their own bytes, so that a
flipped bit in them is found as surely as one in a file that they list.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, TypeGuard

from weft.errors import CheckpointError
from weft.runtime import reading

__all__ = [
    "FOLDER",
    "FORMAT",
    "MANIFEST",
    "RUN_NAME",
    "FileEntry",
    "Manifest",
    "damage",
    "parse_json",
    "read_small",
    "read_verified",
    "seal",
    "unlisted",
    "unseal",
    "verify",
]

FORMAT = 1
"""Version of the layout of a checkpoint folder."""
FOLDER = re.compile(r"step-(\d{8,18})")
"""The name of a checkpoint."""
RUN_NAME = re.compile(r"[0-9a-f]{16}")
"""The name of a run."""
MANIFEST = "manifest.json"
"""The file that lists all others, written last."""

_MAX_SEALED = 16 << 20
_MAX_FILES = 10_000
_TAIL = re.compile(rb',\n "digest": "([0-9a-f]{64})"\n}\n\Z')
_SHA256 = re.compile(r"[0-9a-f]{64}")


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file of a checkpoint."""

    size: int
    """Bytes."""
    sha256: str
    """Of its content, hexadecimal."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """The list of everything in a checkpoint folder but itself."""

    step: int
    """Optimizer steps taken."""
    serial: int
    """Number of the save in its run, from 1: the newest has the largest, whatever the steps say."""
    files: Mapping[str, FileEntry]
    """By path relative to the folder, with ``/``."""
    versions: Mapping[str, str]
    """Of the packages that wrote it."""
    run: str | None = None
    """The name of the run it is of; None of one that has none."""

    def to_bytes(self) -> bytes:
        """The content of ``manifest.json``."""
        return seal({"format": FORMAT, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> "Manifest":
        """Reads and checks a folder's ``manifest.json``.

        Raises:
            CheckpointError: it is missing, damaged or hostile, or of another step than the folder's
                name says.
        """
        manifest = cls.from_bytes(read_small(folder / MANIFEST))
        named = FOLDER.fullmatch(folder.name)
        if named and folder.name != f"step-{manifest.step:08d}":
            raise CheckpointError(f"{MANIFEST}: it is of step {manifest.step}")
        return manifest

    @classmethod
    def from_bytes(cls, data: bytes) -> "Manifest":
        """Reads what ``to_bytes`` wrote; see ``read``."""
        content = unseal(data, MANIFEST)
        if content.get("format") != FORMAT:
            raise CheckpointError(
                f"{MANIFEST}: format {content.get('format')!r} is not the one "
                f"this weft reads ({FORMAT})"
            )
        files, versions = content.get("files"), content.get("versions")
        if not isinstance(files, dict):
            raise CheckpointError(f"{MANIFEST}: it lists no files")
        if not isinstance(versions, dict) or len(files) > _MAX_FILES:
            raise CheckpointError(f"{MANIFEST}: no versions, or more than {_MAX_FILES} files")
        run = content.get("run")
        if run is not None and not (isinstance(run, str) and RUN_NAME.fullmatch(run)):
            raise CheckpointError(f"{MANIFEST}: run is not the name of one")
        return cls(
            step=_count(content, "step"),
            serial=_count(content, "serial"),
            files={_safe_name(name): _entry(name, value) for name, value in files.items()},
            versions={str(key): str(value) for key, value in versions.items()},
            run=run,
        )


def seal(content: Mapping[str, Any]) -> bytes:
    """JSON that ends with the sha256 of everything before that line.

    Example:
        >>> unseal(seal({"step": 3}), "last.json")
        {'step': 3}
    """
    body = json.dumps(dict(content), indent=1, allow_nan=False).encode().removesuffix(b"\n}")
    digest = hashlib.sha256(body).hexdigest()
    return body + f',\n "digest": "{digest}"\n}}\n'.encode()


def unseal(data: bytes, name: str) -> dict[str, Any]:
    """The content of a sealed file, without its digest.

    Raises:
        CheckpointError: any byte differs from what was sealed, or it is not a JSON object.
    """
    tail = _TAIL.search(data)
    if tail is None or hashlib.sha256(data[: tail.start()]).hexdigest() != tail[1].decode():
        raise CheckpointError(f"{name}: its own digest does not fit its content")
    content = parse_json(data, name)
    if not isinstance(content, dict):
        raise CheckpointError(f"{name}: not a JSON object")
    del content["digest"]
    return content


def parse_json(data: bytes, name: str) -> Any:
    """Reads JSON as :func:`weft.runtime.reading.parse_json`.

    Raises:
        CheckpointError: it is something else; names the file.
    """
    return reading.parse_json(data, name, CheckpointError)


def read_small(path: Path) -> bytes:
    """Reads a regular file of at most 16 MiB, following no link.

    Raises:
        CheckpointError: it is missing, too large, or not a regular file.
    """
    return reading.read_all(path, _MAX_SEALED, CheckpointError)


def read_verified(folder: Path, name: str, entry: FileEntry) -> bytes:
    """The bytes of one listed file, which are exactly those that were saved.

    Raises:
        CheckpointError: they are not; names the file and what differs.
    """
    with reading.opened(folder / name, CheckpointError, name=name) as (file, size):
        _check_size(name, size, entry)
        data = file.read(entry.size + 1)
    _check_hash(name, hashlib.sha256(data).hexdigest(), entry)
    return data


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
    extra = [f"{name}: not listed in {MANIFEST}" for name in unlisted(folder, manifest)]
    return [*damage(folder, manifest), *extra]


def damage(folder: Path, manifest: Manifest, *, largest: int | None = None) -> list[str]:
    """What makes a checkpoint unusable: a file that differs from the manifest, or a foreign thing.

    Sizes are checked before anything is read and links are not followed. A plain file beside ours
    that nothing reads (a person's note) is no damage; one in ``text/``, or a link, is.

    Args:
        folder: The checkpoint.
        manifest: Its list of files.
        largest: Bytes that no file of tensors may exceed; None: any size.
    """
    for name, entry in manifest.files.items():
        if largest is not None and name.endswith(".safetensors") and entry.size > largest:
            return [
                f"{name}: {entry.size:,} bytes are more than the {largest:,} its model can need"
            ]
    foreign = [
        f"{name}: not listed in {MANIFEST}"
        for name in unlisted(folder, manifest)
        if "/" in name or (folder / name).is_symlink() or not (folder / name).is_file()
    ]
    if foreign:
        return foreign
    return [
        problem
        for name, entry in manifest.files.items()
        if (problem := _difference(folder, name, entry))
    ]


def unlisted(folder: Path, manifest: Manifest) -> list[str]:
    """Relative names of what is in a checkpoint folder and not in its manifest."""
    folders = {parent.as_posix() for name in manifest.files for parent in Path(name).parents}
    found = []
    for root, directories, names in os.walk(folder):
        for name in sorted([*directories, *names]):
            path = Path(root, name)
            relative = path.relative_to(folder).as_posix()
            if path.is_dir() and not path.is_symlink():
                if relative not in folders and relative != "text":
                    found.append(relative)
            elif relative not in manifest.files and relative != MANIFEST:
                found.append(relative)
    return found


def _difference(folder: Path, name: str, entry: FileEntry) -> str | None:
    try:
        with reading.opened(folder / name, CheckpointError, name=name) as (file, size):
            _check_size(name, size, entry)
            digest = hashlib.file_digest(file, "sha256").hexdigest()
        _check_hash(name, digest, entry)
    except CheckpointError as error:
        return str(error)
    return None


def _check_size(name: str, size: int, entry: FileEntry) -> None:
    if size != entry.size:
        raise CheckpointError(f"{name}: {size:,} bytes instead of {entry.size:,}")


def _check_hash(name: str, found: str, entry: FileEntry) -> None:
    if found != entry.sha256:
        raise CheckpointError(
            f"{name}: sha256 differs ({found[:12]}… instead of {entry.sha256[:12]}…)"
        )


def _safe_name(name: str) -> str:
    parts = name.split("/")
    bad = {"", ".", ".."}.intersection(parts) or "\\" in name or "\0" in name or len(name) > 255
    if bad or name == MANIFEST:
        raise CheckpointError(f"{MANIFEST}: {name[:80]!r} is not a name inside the folder")
    return name


def _entry(name: str, value: Any) -> FileEntry:
    if isinstance(value, dict) and value.keys() == {"size", "sha256"} and _is_count(value["size"]):
        digest = value["sha256"]
        if isinstance(digest, str) and _SHA256.fullmatch(digest):
            return FileEntry(size=value["size"], sha256=digest)
    raise CheckpointError(f"{MANIFEST}: the entry of {name[:80]!r} has no valid size and sha256")


def _count(content: Mapping[str, Any], key: str) -> int:
    value = content.get(key)
    if not _is_count(value):
        raise CheckpointError(f"{MANIFEST}: {key} is not a count")
    return int(value)


def _is_count(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62
