"""A sealed list of files: what a folder must contain, byte for byte, and the check that it does.

One JSON file lists all others of a folder with their size and sha256, and ends with a digest of its
own bytes, so that a flipped bit in it is found as surely as one in a file that it lists.
"""

import hashlib
import json
import os
import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import asdict, dataclass, fields
from pathlib import Path
from typing import Any, ClassVar, Self

from textmill.runtime.files import (
    VERSION,
    Refusal,
    check_version,
    opened,
    parse_json,
    read_all,
    sha256,
)

_TAIL = re.compile(rb',\n "digest": "([0-9a-f]{64})"\n}\n')
_TAIL_SIZE = len(b',\n "digest": ""\n}\n') + 64
_SHA256 = re.compile(r"[0-9a-f]{64}")


def seal(content: Mapping[str, Any]) -> bytes:
    """JSON that ends with the sha256 of everything before that line."""
    body = json.dumps(dict(content), indent=1, allow_nan=False).encode().removesuffix(b"\n}")
    digest = hashlib.sha256(body).hexdigest()
    return body + f',\n "digest": "{digest}"\n}}\n'.encode()


def unseal(data: bytes, name: str, refuse: Refusal, *, own: bool = False) -> dict[str, Any]:
    """The content of a sealed file, without its digest.

    With ``own``, nobody else can have written it, and it may be of any size and depth.
    """
    tail = _TAIL.fullmatch(data[-_TAIL_SIZE:])
    if tail is None or hashlib.sha256(data[:-_TAIL_SIZE]).hexdigest() != tail[1].decode():
        raise refuse(f"{name}: its own digest does not fit its content")
    content = json.loads(data) if own else parse_json(data, name, refuse)
    if not isinstance(content, dict):
        raise refuse(f"{name}: not a JSON object")
    del content["digest"]
    return content


def is_count(value: object) -> bool:
    """Whether a value is a whole number that can count bytes, files or steps."""
    return isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 62


@dataclass(frozen=True, kw_only=True)
class FileEntry:
    """One file of a folder."""

    size: int
    """Bytes."""
    sha256: str
    """Of its content, hexadecimal."""

    @classmethod
    def of(cls, path: Path) -> Self:
        return cls(size=path.stat().st_size, sha256=sha256(path))


@dataclass(frozen=True, kw_only=True)
class SealedFiles:
    """Base of the lists: a subclass names its file, and adds fields of its own."""

    NAME: ClassVar[str]
    """The file in the folder; written last."""
    FORMAT: ClassVar[int] = 1
    """Version of the layout of the folder."""
    LARGEST: ClassVar[int]
    """Bytes of the list that are read."""
    MOST_FILES: ClassVar[int] = 10_000
    """Files that it may list."""
    OPTIONAL_FOLDERS: ClassVar[Collection[str]] = ()
    """Folders that may be there although nothing in them is listed."""
    OWN: ClassVar[bool] = False
    """Whether nobody else can have written the list: then it may be of any size and depth."""
    ERROR: ClassVar[type[Exception]]
    """What is raised of a list that is not as it was written."""

    files: Mapping[str, FileEntry]
    """By path relative to the folder, with ``/``."""

    @classmethod
    def entries(cls, folder: Path) -> dict[str, FileEntry]:
        """The entry of every file below a folder, in the order of their names."""
        found = sorted(path for path in folder.rglob("*") if path.is_file())
        return {path.relative_to(folder).as_posix(): FileEntry.of(path) for path in found}

    def to_bytes(self) -> bytes:
        return seal({VERSION: self.FORMAT, **asdict(self)})

    @classmethod
    def read(cls, folder: Path) -> Self:
        """Reads and checks the list of a folder, and none of the files."""
        return cls.from_bytes(read_all(folder / cls.NAME, cls.LARGEST, cls.ERROR))

    @classmethod
    def from_bytes(cls, data: bytes) -> Self:
        """Reads what ``to_bytes`` wrote; see ``read``."""
        content = unseal(data, cls.NAME, cls.ERROR, own=cls.OWN)
        check_version(content, cls.FORMAT, cls.NAME, cls.ERROR)
        del content[VERSION]
        if odd := content.keys() ^ {field.name for field in fields(cls)}:
            listed = ", ".join(sorted(odd))
            raise cls.ERROR(f"{cls.NAME}: these keys are missing or unknown: {listed:.200}")
        files = content.pop("files")
        if not isinstance(files, dict):
            raise cls.ERROR(f"{cls.NAME}: it lists no files")
        if len(files) > cls.MOST_FILES:
            raise cls.ERROR(f"{cls.NAME}: it lists more than {cls.MOST_FILES:,} files")
        for problem in cls._problems(content):
            raise cls.ERROR(f"{cls.NAME}: {problem}")
        return cls(**content, files={name: cls._entry(name, files[name]) for name in files})

    @classmethod
    def _problems(cls, content: Mapping[str, Any]) -> Iterator[str]:
        """What is wrong with the fields of a subclass, whatever the seal says."""
        yield from ()

    @classmethod
    def _entry(cls, name: str, value: Any) -> FileEntry:
        parts = name.split("/")
        odd = {"", ".", ".."}.intersection(parts) or "\\" in name or "\0" in name
        if odd or len(name) > 255 or name == cls.NAME:
            raise cls.ERROR(f"{cls.NAME}: {name[:80]!r} is not a name inside the folder")
        match value:
            case {"size": size, "sha256": str(digest), **more} if not more:
                if is_count(size) and _SHA256.fullmatch(digest):
                    return FileEntry(size=size, sha256=digest)
        raise cls.ERROR(f"{cls.NAME}: the entry of {name[:80]!r} has no valid size and sha256")

    def unlisted(self, folder: Path) -> list[str]:
        """Relative names of what is in the folder and not listed."""
        folders = {parent.as_posix() for name in self.files for parent in Path(name).parents}
        folders |= {*self.OPTIONAL_FOLDERS}
        files, found = {*self.files, self.NAME}, []
        for root, directories, names in os.walk(folder):
            for name in sorted([*directories, *names]):
                path = Path(root, name)
                relative = path.relative_to(folder).as_posix()
                is_folder = path.is_dir() and not path.is_symlink()
                if relative not in (folders if is_folder else files):
                    found.append(relative)
        return found

    def damage(self, folder: Path, names: Collection[str] | None = None) -> list[str]:
        """The listed files, by default all, that are not as they were written, one line each.

        Sizes are compared before anything is read, and links are not followed.
        """
        found = []
        for name in self.files if names is None else names:
            try:
                self._verified(folder, name)
            except self.ERROR as error:
                found.append(str(error))
        return found

    def read_file(self, folder: Path, name: str) -> bytes:
        """The bytes of one listed file, which are exactly those that were written."""
        return self._verified(folder, name, keep=True)

    def _verified(self, folder: Path, name: str, *, keep: bool = False) -> bytes:
        with opened(folder / name, self.ERROR, name=name) as (file, size):
            listed = self.files[name]
            if size != listed.size:
                raise self.ERROR(f"{name}: {size:,} bytes instead of {listed.size:,}")
            data = file.read(size) if keep else b""
            digest = hashlib.sha256(data) if keep else hashlib.file_digest(file, "sha256")
        if (found := digest.hexdigest()) != listed.sha256:
            differs = f"({found[:12]}… instead of {listed.sha256[:12]}…)"
            raise self.ERROR(f"{name}: sha256 differs {differs}")
        return data
