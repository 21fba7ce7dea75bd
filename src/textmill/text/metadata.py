"""The small JSON file beside saved text objects: which kind they are, and their settings.

It names a registered kind and no file: a stranger's can choose among what is installed alone.
"""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from textmill.config.registry import Registry, UnknownNameError
from textmill.errors import UserError
from textmill.runtime.files import VERSION, check_version, opened, parse_json, write_file

FORMAT = 1
LARGEST_DESCRIPTION = 64 << 20
"""Bytes. Most descriptions have some hundred, one of a million phrases 40 MB; a larger one is not
written, and refused before it is parsed."""


class Saved:
    """Base of what is saved by the arguments of its constructor, each an attribute of its name."""


class SavedTextError(UserError):
    """A saved tokenizer or text processor that cannot be read."""


def write_description(path: Path, kind: str, settings: Mapping[str, Any]) -> None:
    """Writes the description of an object of a registered ``kind``."""
    content = {VERSION: FORMAT, "type": kind, "settings": dict(settings)}
    text = json.dumps(content, indent=2, sort_keys=True, ensure_ascii=False) + "\n"
    if (size := len(text.encode())) > LARGEST_DESCRIPTION:
        raise UserError(
            f"The settings of '{kind}' take {size:,} bytes in {path.name}, but at most "
            f"{LARGEST_DESCRIPTION:,} are read again: nothing is saved. Use fewer or shorter "
            "labels or words."
        )
    write_file(path, text)


def read_description(path: Path) -> tuple[str, dict[str, Any]]:
    raw = read_bytes(path, largest=LARGEST_DESCRIPTION)
    content = parse_json(raw, str(path), lambda why: SavedTextError(f"{why}. Save it again."))
    check_version(content, FORMAT, str(path), lambda why: SavedTextError(f"{why}. Save it again."))
    if set(content) != {VERSION, "type", "settings"}:
        raise SavedTextError(
            f"{path} must hold exactly the keys {VERSION}, type, settings. Save the text processor "
            "again."
        )
    kind, settings = content["type"], content["settings"]
    if not isinstance(kind, str) or not isinstance(settings, dict):
        raise SavedTextError(f"{path}: 'type' must be a string and 'settings' a mapping.")
    return kind, settings


def read_registered(path: Path, registry: Registry) -> tuple[Any, dict[str, Any]]:
    kind, settings = read_description(path)
    try:
        return registry.get(kind), settings
    except UnknownNameError as error:
        raise SavedTextError(
            f"{path}: {error} Install or import the package that registers it."
        ) from None


def settings_of(
    path: Path, settings: Mapping[str, Any], kinds: Mapping[str, type | tuple[type, ...]]
) -> None:
    """Checks that settings are the names of ``kinds``, each of its type (lists: of strings)."""
    for name in settings:
        if name not in kinds:
            known = ", ".join(sorted(kinds))
            raise SavedTextError(f"{path}: unknown setting {name!r:.80}. Known: {known}.")
    for name, kind in kinds.items():
        if name not in settings:
            raise SavedTextError(f"{path}: the setting '{name}' is missing.")
        value = settings[name]
        fits = isinstance(value, kind) and not isinstance(value, bool)
        if not fits or (isinstance(value, list) and not all(isinstance(x, str) for x in value)):
            raise SavedTextError(f"{path}: the setting '{name}' cannot be {value!r:.80}.")


def read_bytes(path: Path, *, largest: int) -> bytes:
    """The content of a regular file of at most ``largest`` bytes."""
    with opened(path, lambda why: SavedTextError(f"{why}."), name=str(path), links=True) as (
        file,
        size,
    ):
        if size > largest:
            raise SavedTextError(
                f"{path} is larger than {largest:,} bytes, the most that is read from it."
            )
        return file.read(size)
