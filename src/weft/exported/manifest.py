"""What an export's folder holds, byte for byte: written last, checked before anything is read.

``export.json`` ends with a digest of its own bytes. Nothing in an export is executed; a graph is
given to the program that runs it only when every byte is as it was written.
"""

import hashlib
import json
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.errors import RunError
from weft.runtime.files import write_file
from weft.runtime.reading import opened, parse_json, read_all

__all__ = ["MANIFEST", "ExportError", "Manifest", "is_export", "read", "seal_folder"]

FORMAT = 1
"""Version of the layout of an export."""
MANIFEST = "export.json"
"""The file that lists all others."""

_KEYS = {"format", "graph", "search", "source", "compared", "versions", "files"}
_MAX_MANIFEST = 1 << 20
_MAX_FILES = 1_000
_TAIL = re.compile(rb',\n "digest": "([0-9a-f]{64})"\n}\n\Z')
_SHA256 = re.compile(r"[0-9a-f]{64}")


class ExportError(RunError):
    """An export that cannot be used, or cannot be made."""


@dataclass(frozen=True, kw_only=True)
class Manifest:
    """What ``export.json`` says."""

    graph: str
    """What runs it: ``ctranslate2``, ``onnx``."""
    search: Mapping[str, Any]
    """Settings of the search, see :class:`weft.exported.search.Search`."""
    source: Mapping[str, Any]
    """Recipe, key and checkpoint that it was made of."""
    compared: Mapping[str, Any]
    """What the comparison with the original found."""
    versions: Mapping[str, Any]
    """Of the packages that wrote it."""
    files: Mapping[str, tuple[int, str]]
    """Bytes and sha256 by path relative to the folder, with ``/``."""


def is_export(folder: Path) -> bool:
    """Whether a folder is an export, damaged or not."""
    return os.path.lexists(folder / MANIFEST)


def seal_folder(folder: Path, facts: Mapping[str, Any]) -> None:
    """Lists every file below a folder in its ``export.json``.

    Args:
        folder: A folder without a manifest.
        facts: All that the manifest says besides the files.
    """
    files = {}
    for path in sorted(folder.rglob("*")):
        if path.is_file():
            with path.open("rb") as file:
                digest = hashlib.file_digest(file, "sha256").hexdigest()
            name = path.relative_to(folder).as_posix()
            files[name] = {"size": path.stat().st_size, "sha256": digest}
    content = {"format": FORMAT, **facts, "files": files}
    text = json.dumps(content, indent=1, allow_nan=False).encode().removesuffix(b"\n}")
    digest = hashlib.sha256(text).hexdigest()
    write_file(folder / MANIFEST, text + f',\n "digest": "{digest}"\n}}\n'.encode())


def read(folder: Path) -> Manifest:
    """Reads an export's manifest and checks every file that it lists.

    Raises:
        ExportError: Something is missing, changed or foreign; names the folder and the file.
    """
    try:
        manifest = _manifest(read_all(folder / MANIFEST, _MAX_MANIFEST, ExportError))
        _refuse_foreign(folder, manifest.files)
        for name, (size, sha256) in manifest.files.items():
            with opened(folder / name, ExportError, name=name) as (file, found):
                if found != size:
                    raise ExportError(f"{name}: {found:,} bytes instead of {size:,}")
                if hashlib.file_digest(file, "sha256").hexdigest() != sha256:
                    raise ExportError(f"{name}: its bytes are not those that were written")
    except ExportError as error:
        raise ExportError(
            f"{folder} is no export that can be used: {error}. Export the run again: "
            "weft export RUN --format ctranslate2"
        ) from None
    return manifest


def _manifest(data: bytes) -> Manifest:
    tail = _TAIL.search(data)
    if tail is None or hashlib.sha256(data[: tail.start()]).hexdigest() != tail[1].decode():
        raise ExportError(f"{MANIFEST}: its own digest does not fit its content")
    content = parse_json(data, MANIFEST, ExportError)
    if content.get("format") != FORMAT:
        raise ExportError(
            f"{MANIFEST}: format {content.get('format')!r:.40} is not the one this weft reads "
            f"({FORMAT})"
        )
    del content["digest"]
    if set(content) != _KEYS:
        odd = ", ".join(sorted(set(content) ^ _KEYS))
        raise ExportError(f"{MANIFEST}: these keys are missing or unknown: {odd:.200}")
    if not isinstance(content["graph"], str):
        raise ExportError(f"{MANIFEST}: 'graph' must be text")
    for key in _KEYS - {"format", "graph"}:
        if not isinstance(content[key], dict):
            raise ExportError(f"{MANIFEST}: '{key}' must be a mapping")
    del content["format"]
    files = content.pop("files")
    if len(files) > _MAX_FILES:
        raise ExportError(f"{MANIFEST}: it lists more than {_MAX_FILES:,} files")
    return Manifest(**content, files={name: _entry(name, value) for name, value in files.items()})


def _entry(name: str, value: Any) -> tuple[int, str]:
    parts = name.split("/")
    inside = not ({"", ".", ".."} & set(parts) or "\\" in name or "\0" in name or len(name) > 255)
    if not inside or name == MANIFEST:
        raise ExportError(f"{MANIFEST}: {name!r:.80} is not a name inside the folder")
    entry: dict[str, Any] = value if isinstance(value, dict) else {}
    size: Any = entry.get("size")
    sha256 = entry.get("sha256")
    counted = isinstance(size, int) and not isinstance(size, bool) and 0 <= size < 1 << 62
    if counted and isinstance(sha256, str) and _SHA256.fullmatch(sha256):
        return size, sha256
    raise ExportError(f"{MANIFEST}: the entry of {name!r:.80} has no valid size and sha256")


def _refuse_foreign(folder: Path, files: Mapping[str, Any]) -> None:
    """Refuses whatever is in the folder and not listed: a program may read what it finds."""
    folders = {parent.as_posix() for name in files for parent in Path(name).parents}
    for root, directories, names in os.walk(folder):
        for name in sorted([*directories, *names]):
            path = Path(root, name)
            relative = path.relative_to(folder).as_posix()
            is_folder = path.is_dir() and not path.is_symlink()
            if relative not in (folders if is_folder else {*files, MANIFEST}):
                raise ExportError(f"{relative!r:.80}: not listed in {MANIFEST}")
