"""Construction of settings in Python: each is of its annotation, or is refused by its name.

What a file may write may be written here: a dictionary where a structure is wanted, ``"15m"`` for a
time. A value that is of its annotation already stays the object it is.
"""

import dataclasses
import functools
from collections.abc import Mapping
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

from weft.config.code_names import CodeNames
from weft.config.foreign_names import missing_hooks
from weft.config.merge import Settings, structure_of
from weft.config.parameters import MISSING, settings_of
from weft.config.values.annotations import hints, is_of, is_settable, type_name
from weft.config.values.raw_values import Entries, Value
from weft.errors import Place, UserError, refuse_all

__all__ = ["from_plain", "typed_construction"]

K = TypeVar("K", bound=type[Any])
CODE = Place("Python")
"""Where a value comes from that code gave."""


def typed_construction(kind: K) -> K:
    """A decorator of a dataclass of settings, by which its constructor reads what it is given.

    Raises:
        UserError: With every setting that is unknown, missing or of another type.

    Example:
        >>> @typed_construction
        ... @dataclasses.dataclass(frozen=True)
        ... class Search:
        ...     beam_size: int = 4
        >>> Search(beam_size="many")
        Traceback (most recent call last):
        weft.errors.UserError: Search.beam_size: wanted int, found 'many'.
    """
    made = kind.__init__

    @functools.wraps(made)
    def constructor(self: Any, *values: Any, **settings: Any) -> None:
        made(self, *values, **_typed(type(self), settings, given=len(values)))
        owner = getattr(type(self), "owner", None)
        of: tuple[Any, ...] = () if owner is None else (type(self), owner)
        refuse_all([UserError(text) for each in of for text in missing_hooks(each)])

    kind.__init__ = constructor
    return kind


def from_plain(kind: type[Any], data: Mapping[str, Any]) -> Any:
    """The Config of plain data, as ``plain`` gives it; ``type`` counts.

    Data may come from anywhere: a ``type`` like ``@module.name`` has nothing imported.

    Raises:
        UserError: With everything in it that is unknown or of another type.
    """
    reader = Settings(CodeNames(closed=(CODE.source,)))
    found = reader.read(_entries(data), kind, type_name(kind))
    _refuse(reader)
    return found


def _typed(kind: type[Any], settings: Mapping[str, Any], *, given: int) -> Mapping[str, Any]:
    """The settings with those read that are not of their annotations."""
    types, required = _known(kind)
    absent = [name for name in required[given:] if name not in settings]
    other = {
        name: value
        for name, value in settings.items()
        if name not in types or not is_of(value, types[name])
    }
    if not (other or absent):
        return settings
    reader, name = Settings(), type_name(kind)
    known = settings_of(kind)
    reader.refuse_unknown([p.name for p in known], [_entries(other)], name)
    for parameter in known:
        if parameter.name in absent:
            reader.required(f"{name}.{parameter.name}", known, parameter.name, None)
        elif parameter.name in other:
            value = other[parameter.name]
            structure = structure_of(parameter.annotation, MISSING)
            if is_settable(parameter.annotation) or (structure and type(value) is dict):
                dotted = f"{name}.{parameter.name}"  # of other classes any object is taken
                other[parameter.name] = reader.resolve(parameter, [Value(value, CODE)], dotted)
    _refuse(reader)
    return {**settings, **other}


def _refuse(reader: Settings) -> None:
    refuse_all([UserError(problem.message) for problem in reader.problems])


def _entries(data: Mapping[str, Any]) -> Entries:
    return Entries({str(key): Value(value, CODE) for key, value in data.items()}, CODE)


_KNOWN: WeakKeyDictionary[type[Any], tuple[dict[str, Any], list[str]]] = WeakKeyDictionary()
"""What was found: to evaluate the annotations of one class takes 0.1 ms."""


def _known(kind: type[Any]) -> tuple[dict[str, Any], list[str]]:
    """The annotation of each field, and the names of those without a default, in their order."""
    if kind in _KNOWN:
        return _KNOWN[kind]
    fields = [entry for entry in dataclasses.fields(kind) if entry.init]
    found = hints(kind)
    types = {entry.name: found.get(entry.name, entry.type) for entry in fields}
    none = dataclasses.MISSING
    required = [f.name for f in fields if f.default is none and f.default_factory is none]
    if not any(isinstance(annotation, str) for annotation in types.values()):
        _KNOWN[kind] = types, required  # else a name in them may be defined later
    return types, required
