"""Whether a run that is loaded reads a value of a person's own as it was."""

import dataclasses
import enum
from collections.abc import Mapping, Sequence, Set
from datetime import timedelta
from pathlib import PurePath
from typing import Any

from textmill.config.code_names import CodeNames, is_code
from textmill.config.merge import Settings
from textmill.config.parameters import MISSING, Parameter
from textmill.config.values.annotations import has_word
from textmill.config.values.raw_values import Entries, Value, shown
from textmill.config.values.typed_values import INVALID, plain
from textmill.config.values.yaml_files import dump_yaml, yaml_nodes

_LEAVES = (bool, int, float, str, enum.Enum, timedelta, PurePath, type(None))


def why_lost(value: Any, parameter: Parameter, owner: str, names: CodeNames) -> str | None:
    """Why a loaded run would have another value, and what to do; None if it would have the same.

    Values without a part of a person's own are not looked at: the library's own read back.
    """
    if value is MISSING or value is INVALID or not _is_own(value):
        return None
    name, written = f"{owner}.{parameter.name}", plain(value)
    top = yaml_nodes(dump_yaml({parameter.name: written}), source=name)
    assert isinstance(top, Entries)
    reader = Settings(names)
    back = reader.fields([parameter], [top], owner)[parameter.name]
    if not reader.problems and _reads_back(back, value):
        return None
    kinds = f"is a {type(value).__name__} and would be read as a {type(back).__name__}"
    why = f"{name}: {shown(Value(written))} {kinds}."
    if reader.problems:
        why = reader.problems[0].message
    return (
        f"{why} A run with it could not be loaded: define what is your own at the top of a module, "
        "and annotate the setting with what it takes."
    )


def _is_own(value: Any) -> bool:
    """Whether the value, or one in it, is code, a class of a person's own, or no plain data."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = (getattr(value, entry.name) for entry in dataclasses.fields(value) if entry.init)
        return type(value).__module__.partition(".")[0] != "textmill" or any(map(_is_own, fields))
    if isinstance(value, Mapping):
        return any(map(_is_own, value.values()))
    if isinstance(value, Sequence | Set) and not isinstance(value, str):
        return any(map(_is_own, value))
    return not _is_leaf(value)


def _is_leaf(value: Any) -> bool:
    return isinstance(value, _LEAVES) or has_word(type(value)) or type(value).__module__ == "torch"


def _reads_back(first: Any, second: Any) -> bool:
    """Whether two values are the same, of the same classes; a list may be a tuple."""
    if is_code(first):
        return first is second
    if dataclasses.is_dataclass(first):
        names = [entry.name for entry in dataclasses.fields(first) if entry.init]
        return type(first) is type(second) and all(
            _reads_back(getattr(first, name), getattr(second, name)) for name in names
        )
    if isinstance(first, Mapping) and isinstance(second, Mapping):
        return first.keys() == second.keys() and all(
            _reads_back(first[k], second[k]) for k in first
        )
    if isinstance(first, list | tuple) and isinstance(second, list | tuple):
        return len(first) == len(second) and all(map(_reads_back, first, second))
    leaves = _is_leaf(first) and _is_leaf(second)
    return (leaves or type(first) is type(second)) and plain(first) == plain(second)
