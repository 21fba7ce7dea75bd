"""Annotations: which are values a person can set, their names, and whether one fits another."""

import dataclasses
import enum
import inspect
import types
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import timedelta
from functools import lru_cache
from pathlib import Path
from typing import Any

PLAIN = (int, float, bool, str, Path)
DTYPE, DEVICE = "dtype", "device"
_NONE = type(None)


def hints(owner: Callable[..., Any] | type[Any]) -> dict[str, Any]:
    """The annotations of a function or class; one that cannot be evaluated stays text."""
    target = inspect.unwrap(owner) if not isinstance(owner, type) else owner
    try:
        return dict(_evaluated(target))
    except Exception:
        return _hints_one_by_one(target)


@lru_cache(maxsize=4096)
def _evaluated(target: Any) -> dict[str, Any]:
    """A plan asks for each class several times, and evaluating takes 1 ms."""
    return typing.get_type_hints(target)


def _hints_one_by_one(target: Any) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for kind in reversed(target.__mro__) if isinstance(target, type) else [target]:
        space = getattr(kind, "__globals__", None) or vars(inspect.getmodule(kind) or kind)
        for name, annotation in getattr(kind, "__annotations__", {}).items():
            try:
                probe = types.SimpleNamespace(__annotations__={name: annotation})
                found |= typing.get_type_hints(probe, globalns=dict(space))
            except Exception:
                found[name] = annotation
    return found


def unwrapped(annotation: Any) -> Any:
    """Without Annotated, NewType, Required and the like."""
    while True:
        if typing.get_origin(annotation) is typing.Annotated:
            annotation = typing.get_args(annotation)[0]
        elif hasattr(annotation, "__supertype__"):
            annotation = annotation.__supertype__
        elif hasattr(annotation, "__value__") and type(annotation).__name__ == "TypeAliasType":
            annotation = annotation.__value__
        else:
            return annotation


def members(annotation: Any) -> tuple[Any, ...] | None:
    """The members of a union, or None when it is none."""
    union = typing.get_origin(annotation) in (typing.Union, types.UnionType)
    return typing.get_args(annotation) if union else None


def torch_kind(annotation: Any) -> str | None:
    """``dtype`` or ``device`` for torch's classes, known by name: torch itself is not imported."""
    if isinstance(annotation, str):
        name = annotation
    elif isinstance(annotation, type):
        name = f"{annotation.__module__}.{annotation.__qualname__}"
    else:
        return None
    return {"torch.dtype": DTYPE, "torch.device": DEVICE}.get(name)


def has_word(annotation: Any) -> bool:
    """Whether the class has a one-word form: ``parse(text)``, and ``str`` that reads back."""
    return isinstance(annotation, type) and callable(getattr(annotation, "parse", None))


def is_code_type(annotation: Any) -> bool:
    """Whether values of the type are classes or functions."""
    return (typing.get_origin(annotation) or annotation) in (type, Callable)


def is_value_type(annotation: Any) -> bool:
    """Whether the annotation can only mean a setting: a value type that is no plain class."""
    annotation = unwrapped(annotation)
    if inspect.isclass(annotation) and typing.get_origin(annotation) is None:
        if issubclass(annotation, enum.Enum | timedelta) or torch_kind(annotation):
            return True
        return annotation in (list, tuple, dict, set, frozenset)
    union = members(annotation) or ()
    if any(dataclasses.is_dataclass(member) or has_word(member) for member in union):
        return False
    return is_settable(annotation)


def is_settable(annotation: Any) -> bool:
    """Whether a value of this type can be written in YAML or on a command line."""
    annotation = unwrapped(annotation)
    if annotation in (None, _NONE, *PLAIN, list, tuple, dict, set, frozenset):
        return True
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal or torch_kind(annotation):
        return True
    union = members(annotation)
    if union is not None:
        return all(is_settable(member) for member in union)
    if isinstance(origin, type) and issubclass(origin, Sequence | Mapping | Set):
        return all(each is ... or each is Any or is_settable(each) for each in arguments)
    if not isinstance(annotation, type) or origin is not None:
        return False
    if issubclass(annotation, enum.Enum | timedelta | Path):
        return True
    return dataclasses.is_dataclass(annotation) or has_word(annotation)


def structure_of(annotation: Any, default: Any) -> Any:
    """The dataclass that a setting is filled as, or None when it is one value."""
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        return type(default)
    bases = bases_of(annotation)
    return bases[0] if bases else None


def bases_of(annotation: Any) -> tuple[Any, ...]:
    """The dataclasses among the annotation and the members of its union."""
    annotation = unwrapped(annotation)
    union = members(annotation) or (annotation,)
    return tuple(
        a for a in map(unwrapped, union) if isinstance(a, type) and dataclasses.is_dataclass(a)
    )


def owners_of(annotation: Any) -> tuple[type[Any], ...]:
    return tuple(base.owner for base in bases_of(annotation) if hasattr(base, "owner"))


def is_of(value: object, annotation: Any) -> bool:
    """Whether a Python object is of the annotated type, with all that it contains.

    What cannot be looked into is: a class that stays text, a protocol, a dtype or device.
    """
    annotation = unwrapped(annotation)
    union, origin = members(annotation), typing.get_origin(annotation)
    if union is not None:
        return any(is_of(value, member) for member in union)
    if origin is typing.Literal:
        return any(type(value) is type(x) and value == x for x in typing.get_args(annotation))
    kind = _plain_class(annotation)
    if kind is None or torch_kind(annotation) or _is_protocol(kind):
        return True
    if kind in (int, float):
        return isinstance(value, int | kind) and not isinstance(value, bool)
    if not isinstance(value, kind) or (isinstance(value, str) and issubclass(kind, Sequence)):
        return isinstance(value, kind) and issubclass(kind, str)  # a text is no list of letters
    return _contains(value, typing.get_args(annotation))


def _contains(value: Any, arguments: Sequence[Any]) -> bool:
    """Whether the items of a container are of the types that its annotation has."""
    if not arguments or isinstance(value, str) or not isinstance(value, Sequence | Mapping | Set):
        return True
    if isinstance(value, Mapping) and len(arguments) == 2:
        key, item = arguments
        return all(is_of(k, key) and is_of(v, item) for k, v in value.items())
    if isinstance(value, tuple) and ... not in arguments:
        kinds = () if arguments == ((),) else arguments
        return len(kinds) == len(value) and all(map(is_of, value, kinds))
    return all(is_of(item, arguments[0]) for item in value)


def type_name(annotation: Any) -> str:
    """What messages and help call a type."""
    annotation = unwrapped(annotation)
    if annotation in (None, _NONE):
        return "None"
    if annotation in (inspect.Parameter.empty, Any, ...):
        return {...: "..."}.get(annotation, "?")
    if isinstance(annotation, str):
        return annotation
    union = members(annotation)
    if union is not None:
        return " | ".join(type_name(member) for member in union)
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if origin is typing.Literal:
        return " | ".join(repr(option) for option in arguments)
    if origin is not None:
        inside = ", ".join(type_name(argument) for argument in arguments)
        return f"{_class_name(origin)}[{inside}]" if arguments else _class_name(origin)
    return _class_name(annotation)


def _class_name(kind: Any) -> str:
    if kind is Path:
        return "pathlib.Path"
    name = getattr(kind, "__qualname__", None) or str(kind)
    module = getattr(kind, "__module__", "")
    if torch_kind(kind) or module == "datetime":
        return f"{module}.{name}"
    return str(name).rpartition("<locals>.")[2]


def fits(produced: Any, wanted: Any) -> bool:
    """Whether a value of the produced type can stand where the other is wanted; in doubt, yes."""
    produced, wanted = unwrapped(produced), unwrapped(wanted)
    for union in (members(produced), members(wanted)):
        if union is not None:
            pairs = ((a, wanted) if union is members(produced) else (produced, a) for a in union)
            return any(fits(a, b) for a, b in pairs)
    made, need = _plain_class(produced), _plain_class(wanted)
    if made is None or need is None or _is_protocol(need) or _is_protocol(made):
        return True
    is_number = need is float and issubclass(made, int)
    return is_number or issubclass(made, need) or issubclass(need, made)


def _plain_class(annotation: Any) -> type[Any] | None:
    if annotation is None:
        return _NONE
    if annotation in (Any, inspect.Parameter.empty):
        return None
    found = typing.get_origin(annotation) or annotation
    return found if isinstance(found, type) else None


def _is_protocol(kind: type[Any]) -> bool:
    return bool(getattr(kind, "_is_protocol", False))
