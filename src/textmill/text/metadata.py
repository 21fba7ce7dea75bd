"""How text objects are saved: a small JSON file with their kind and settings, and files beside it.

It names a registered kind and no file: a stranger's can choose among what is installed alone.
"""

import inspect
import json
from abc import ABC
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, ClassVar, Self, TypeVar, get_args, get_origin, get_type_hints

import numpy as np

from textmill.config.registry import Registry, UnknownNameError
from textmill.errors import UserError
from textmill.runtime.files import VERSION, check_version, opened, parse_json, write_file

FORMAT = 1
LARGEST_DESCRIPTION = 64 << 20
"""Bytes. Most descriptions have some hundred, one of a million phrases 40 MB; a larger one is not
written, and refused before it is parsed."""
T = TypeVar("T")


class SavedTextError(UserError):
    """A saved tokenizer or text processor that cannot be read."""


def refuse_twice(names: Sequence[str], what: str) -> None:
    if len({*names}) < len(names):
        twice = Counter(names).most_common(1)[0][0]
        raise UserError(f"{what} must differ, but {twice!r} is there twice.")


class Saved:
    """Base of what is saved by the arguments of its constructor, each an attribute of its name.

    An argument is a JSON value, another ``Saved``, whose arguments stand beside, or a
    :class:`SavedFolder`, which has the folder of its name.
    """


class SavedFolder(Saved, ABC):
    """Base of what is saved in a folder of its own: a tokenizer, a column, a text processor."""

    kind: ClassVar[str]
    """The registered name; saved with the object and looked up when it is loaded."""
    registry: ClassVar[Registry]
    """The kinds that can be loaded: textmill's, and those that installed packages register."""
    description: ClassVar[str]
    """The name of the file with its kind and its settings."""

    def save(self, folder: Path) -> None:
        """Writes all that ``load`` needs into ``folder``, as data: no pickle, no code."""
        folder.mkdir(parents=True, exist_ok=True)
        write_description(folder / self.description, self.kind, self.save_files(folder))

    @classmethod
    def load(cls, folder: Path) -> Self:
        """Loads what ``save`` wrote.

        Raises:
            SavedTextError: The folder has nothing of the kind, or was changed.
        """
        path = folder / cls.description
        kind, settings = read_description(path)
        try:
            owner = cls.registry.get(kind)
        except UnknownNameError as error:
            raise SavedTextError(
                f"{path}: {error} Install or import the package that registers it."
            ) from None
        if not (isinstance(owner, type) and issubclass(owner, cls)):
            raise SavedTextError(
                f"{path}: a {cls.registry.concept} of type '{kind}' is not loaded from files; it "
                "makes another, and that one is saved. Save the text processor again."
            )
        try:
            loaded: Self = owner.from_files(folder, settings)
        except SavedTextError:
            raise
        except (OverflowError, UserError, ValueError) as error:
            raise SavedTextError(f"{path}: {error}") from None
        return loaded

    def save_files(self, folder: Path) -> dict[str, Any]:
        """Writes the object's files and returns its settings, as JSON values."""
        return arguments_of(self, folder)

    @classmethod
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        """Makes the object from what ``save_files`` wrote; ``settings`` may be a stranger's.

        Those that cannot be are a UserError or a ValueError.
        """
        return made_of(cls, folder, settings)


def arguments_of(made: object, folder: Path, *, without: Sequence[str] = ()) -> dict[str, Any]:
    """The arguments that something was made with, as JSON values; what has a folder is saved."""
    settings: dict[str, Any] = {}
    for name in _arguments(type(made)):
        value = None if name in without else getattr(made, name)
        if isinstance(value, SavedFolder):
            value.save(folder / name)
        elif isinstance(value, Saved):
            settings |= arguments_of(value, folder)
        elif name not in without:
            settings[name] = _plain(value)
    return settings


def made_of(kind: type[T], folder: Path, settings: Mapping[str, Any], **known: Any) -> T:
    """Something by its saved arguments, each of its annotated type, and by those that are known."""
    unread = dict(settings)
    made = _made(kind, folder, unread, known)
    _refuse_others(unread)
    return made


def _made(kind: type[T], folder: Path, unread: dict[str, Any], known: Mapping[str, Any] = {}) -> T:
    hints = get_type_hints(kind.__init__) | get_type_hints(kind)
    arguments = dict(known)
    for name in _arguments(kind):
        hint = hints[name]
        if name in known:
            continue
        if isinstance(hint, type) and issubclass(hint, SavedFolder):
            arguments[name] = hint.load(folder / name)
        elif isinstance(hint, type) and issubclass(hint, Saved):
            arguments[name] = _made(hint, folder, unread)
        else:
            arguments[name] = _taken(unread, name, hint)
    return kind(**arguments)


def read_settings(settings: Mapping[str, Any], hints: Mapping[str, Any]) -> dict[str, Any]:
    """The settings of these names, each of its annotated type; refuses others."""
    unread = dict(settings)
    values = {name: _taken(unread, name, hint) for name, hint in hints.items()}
    _refuse_others(unread)
    return values


def _refuse_others(unread: Mapping[str, Any]) -> None:
    if unread:
        raise UserError(f"unknown setting {next(iter(unread))!r:.80}.")


def _taken(unread: dict[str, Any], name: str, hint: Any) -> Any:
    if name not in unread:
        raise UserError(f"the setting '{name}' is missing.")
    value = unread.pop(name)
    try:
        return _reader(hint).validate_json(json.dumps(value), strict=True)
    except ValueError:
        raise UserError(f"the setting '{name}' cannot be {value!r:.80}.") from None


def _arguments(kind: type[Any]) -> list[str]:
    parameters = inspect.signature(kind).parameters.values()
    return [one.name for one in parameters if one.kind is not one.VAR_KEYWORD]


def _plain(value: Any) -> Any:
    value = value.tolist() if isinstance(value, np.ndarray) else value
    return [_plain(part) for part in value] if isinstance(value, tuple | list) else value


@cache
def _reader(hint: Any) -> Any:
    from pydantic import TypeAdapter

    return TypeAdapter(_listed(hint))


def _listed(hint: Any) -> Any:
    """An annotation with lists for what may be iterated once."""
    origin, parts = get_origin(hint), tuple(map(_listed, get_args(hint)))
    if origin in (Iterable, Sequence):
        return list[parts[0]]  # type: ignore[valid-type]  # known when it runs
    return tuple.__class_getitem__(parts) if origin is tuple else hint


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
