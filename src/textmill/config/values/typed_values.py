"""From what was written to typed values, and from typed values to plain data that reads back equal.

The type decides what a word means: ``no`` is text in a text field and False in a bool field.
"""

import dataclasses
import enum
import inspect
import json
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import timedelta
from typing import Any

from typing_extensions import override

from textmill.config.code_names import CodeNames, UnknownCodeError, code_name, is_code, type_word
from textmill.config.values.annotations import (
    DEVICE,
    has_word,
    is_code_type,
    is_of,
    members,
    torch_kind,
    type_name,
    unwrapped,
)
from textmill.config.values.raw_values import (
    Entries,
    Items,
    Node,
    Scalar,
    Value,
    as_entries,
    is_null,
    shown,
    untyped,
)
from textmill.config.values.scalars import (
    SCALARS,
    WrongTypeError,
    expect,
    format_duration,
    from_word,
    is_quoted,
    one_of,
    torch_name,
)
from textmill.errors import Place, Problem


class StandIn:
    """What stands where a value would be."""

    def __init__(self, name: str) -> None:
        self.name = name

    @override
    def __repr__(self) -> str:
        return self.name


INVALID = StandIn("INVALID")
"""Where no value could be read."""


class Values:
    """Reads nodes into typed values; what is wrong is collected in ``problems``, all of it.

    Args:
        names: What ``@module.name`` leads to.
    """

    def __init__(self, names: CodeNames | None = None) -> None:
        self.names = names or CodeNames()
        self.problems: list[Problem] = []
        self.unknown: list[tuple[str, str]] = []
        """Settings that name code which a file may not have imported, each with the name."""

    def problem(self, message: str, place: Place | None) -> StandIn:
        """Notes something wrong and returns the stand-in."""
        self.problems.append(Problem(message, place))
        return INVALID

    def structure(self, node: Node, annotation: Any, name: str) -> Any:
        """Reads a dataclass; the tree of settings knows how."""
        return self.problem(f"{name}: {type_name(annotation)} cannot be read here.", node.place)

    def component(self, node: Entries, name: str) -> Any:
        """Reads what only its ``type`` says what it is; the tree of settings knows how."""
        return self.problem(f"{name}: a component cannot be read here.", node.place)

    def read(self, node: Node, annotation: Any, name: str) -> Any:
        """The node as a value of the type, or INVALID with the problem noted under ``name``."""
        annotation = unwrapped(annotation)
        try:
            return self._read(node, annotation, name)
        except WrongTypeError as error:
            wanted = f"{name}: wanted {type_name(annotation)}, found {shown(node)}."
            return self.problem(f"{name}: {error.message}" if error.message else wanted, node.place)

    def _read(self, node: Node, annotation: Any, name: str) -> Any:
        union = members(annotation)
        if union is not None:
            return self._union(node, union, name)
        if annotation in (Any, inspect.Parameter.empty):
            return self._anything(node, name)
        if annotation in (None, type(None)):
            return expect(None, is_null(node))
        origin = typing.get_origin(annotation) or annotation
        if origin is typing.Literal:
            return one_of(node, {option: option for option in typing.get_args(annotation)})
        if torch_kind(annotation):
            return torch_name(node, torch_kind(annotation))
        if not isinstance(origin, type):
            return untyped(node)
        return self._read_class(node, origin, annotation, name)

    def _read_class(self, node: Node, origin: type[Any], annotation: Any, name: str) -> Any:
        spelled = origin in (bool, timedelta) or has_word(origin)  # as a file has it
        if spelled and isinstance(node, Value) and isinstance(node.value, str):
            node = Scalar(node.value, node.place or Place("code"), quoted=True)
        for kinds, read in SCALARS:
            if issubclass(origin, kinds):
                return read(node, origin)
        if is_code_type(annotation) and isinstance(node, Scalar):
            return self._code(node, name)
        if origin is not str and issubclass(origin, Mapping):
            return self._mapping(node, annotation, name)
        if issubclass(origin, Sequence | Set):
            return self._sequence(node, origin, annotation, name)
        if isinstance(node, Value) and isinstance(node.value, origin):
            return node.value
        if has_word(origin) and isinstance(node, Scalar):
            return from_word(node, origin)
        if dataclasses.is_dataclass(origin):
            return self.structure(node, annotation, name)
        return untyped(node) if origin is object else expect(None, False)

    def _anything(self, node: Node, name: str) -> Any:
        """Plain data where no type is asked for; what is of ``type: @module.name`` is made."""
        if isinstance(node, Items):
            pairs = enumerate(node.items)
            return [self._anything(item, f"{name}[{index}]") for index, item in pairs]
        if isinstance(node, Entries):
            kind = node.entries.get("type")
            if isinstance(kind, Scalar) and kind.text.startswith("@"):
                return self.component(node, name)
            return {k: self._anything(item, f"{name}.{k}") for k, item in node.entries.items()}
        return untyped(node)

    def _code(self, node: Scalar, name: str) -> Any:
        """The class or function that ``@module.name`` names; never one that a run's file names."""
        expect(None, node.text.startswith("@"))
        try:
            if self.names.is_closed(node.place):
                raise UnknownCodeError(f"'{node.text}' is code, which no run folder may name.")
            return self.names.find(node.text, node.place)
        except UnknownCodeError as error:
            self.unknown.append((name, node.text))
            raise WrongTypeError(str(error)) from error

    def _union(self, node: Node, union: tuple[Any, ...], name: str) -> Any:
        if is_null(node) and type(None) in union:
            return None
        kinds = [unwrapped(member) for member in union if member is not type(None)]
        if isinstance(node, Value):
            exact = [kind for kind in kinds if isinstance(kind, type) and type(node.value) is kind]
            kinds = exact + kinds
        named = isinstance(node, Scalar) and node.text.startswith("@")
        text_last = sorted(kinds, key=lambda kind: (kind is str) != (is_quoted(node) and not named))
        attempts: list[list[Problem]] = []
        for kind in text_last:
            child = self.fresh()
            value = child.read(node, kind, name)
            if not child.problems:
                return value
            attempts.append(child.problems)
        alone = _only_scalar(node, text_last)
        if len(attempts) == 1 or alone is not None:
            self.problems += attempts[alone or 0]
            return INVALID
        raise WrongTypeError(_unquoted(node, kinds, name))

    def fresh(self) -> "Values":
        """A reader of the same kind for an attempt that may fail."""
        child = type(self)(self.names)
        child.unknown = self.unknown
        return child

    def _sequence(self, node: Node, origin: type[Any], annotation: Any, name: str) -> Any:
        if (
            isinstance(node, Value)
            and isinstance(node.value, Sequence | Set)
            and not isinstance(node.value, str)
        ):
            node = Items(
                tuple(Value(item, node.place) for item in node.value), node.place or Place("code")
            )
        if not isinstance(node, Items):
            raise WrongTypeError(self._as_list(node, annotation, name))
        arguments = typing.get_args(annotation)
        fixed = origin is tuple and arguments and arguments[-1] is not ...
        if fixed and arguments == ((),):
            arguments = ()
        if fixed and len(arguments) != len(node.items):
            raise WrongTypeError
        kinds = arguments if fixed else [arguments[0] if arguments else Any] * len(node.items)
        found = [
            self.read(item, kind, f"{name}[{index}]")
            for index, (item, kind) in enumerate(zip(node.items, kinds, strict=True))
        ]
        if INVALID in found:
            return INVALID
        return _container(origin)(found)

    def _as_list(self, node: Node, annotation: Any, name: str) -> str | None:
        """For a text that would be right in a list: the error that shows the list."""
        if not isinstance(node, Scalar) or not node.text:
            return None
        words, child = [word.strip() for word in node.text.split(",")], self.fresh()
        items = Items(tuple(Scalar(word, node.place) for word in words), node.place)
        found = child.read(items, annotation, name)
        if child.problems or not words[-1]:
            return None
        if any(isinstance(item, str) for item in found):
            words = [json.dumps(word, ensure_ascii=False) for word in words]
        wanted = f"wanted {type_name(annotation)}, found {shown(node)}"
        return f"{wanted}; as a list it is [{', '.join(words)}]."

    def _mapping(self, node: Node, annotation: Any, name: str) -> Any:
        if (
            isinstance(node, Value)
            and isinstance(node.value, Mapping)
            and is_of(node.value, annotation)
        ):
            return node.value
        node = as_entries(node)
        if not isinstance(node, Entries):
            raise WrongTypeError
        key_kind, value_kind = typing.get_args(annotation) or (str, Any)
        found = {}
        for key, item in node.entries.items():
            place = node.place_of(key)
            found[self.read(Scalar(key, place), key_kind, f"{name} key")] = self.read(
                item, value_kind, f"{name}.{key}"
            )
        return INVALID if INVALID in (*found, *found.values()) else found


def _container(origin: type[Any]) -> Callable[[list[Any]], Any]:
    if issubclass(origin, tuple):
        return tuple
    if issubclass(origin, frozenset | set):
        return origin
    return list if issubclass(list, origin) or origin is list else tuple


def _only_scalar(node: Node, kinds: Sequence[Any]) -> int | None:
    """Which kind a text can be where all others are lists or mappings: its error says most."""
    origins = [typing.get_origin(kind) or kind for kind in kinds]
    alone = [
        at
        for at, origin in enumerate(origins)
        if not (isinstance(origin, type) and issubclass(origin, Sequence | Mapping))
        or origin is str
    ]
    return alone[0] if isinstance(node, Scalar) and len(alone) == 1 else None


def _unquoted(node: Node, kinds: Sequence[Any], name: str) -> str | None:
    """For ``label:stars``, of which a shell has taken the braces: the error that shows the word."""
    origins = [typing.get_origin(kind) for kind in kinds]
    if dict not in origins or not isinstance(node, Scalar) or ":" not in node.text:
        return None
    return (
        f"wanted a mapping, found {shown(node)}. A shell takes braces away where the word is not "
        f"quoted, as '{name}={{a: b}}'."
    )


def plain(value: Any) -> Any:
    """The value as plain data (None, bool, number, text, list, dict) that reads back equal."""
    if isinstance(value, enum.Enum) or value is None or isinstance(value, int | float | str):
        return value.name if isinstance(value, enum.Enum) else value
    if isinstance(value, timedelta):
        return format_duration(value)
    if has_word(type(value)):
        return str(value)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        word = type_word(getattr(value, "owner", None))
        head = {"type": word} if word else {}
        fields = [f.name for f in dataclasses.fields(value) if f.init]
        return {**head, **{name: plain(getattr(value, name)) for name in fields}}
    if isinstance(value, Mapping):
        return {plain(key): plain(item) for key, item in value.items()}
    if isinstance(value, Set):
        return sorted(
            (plain(item) for item in value), key=lambda item: (str(type(item)), str(item))
        )
    if isinstance(value, Sequence):
        return [plain(item) for item in value]
    return code_name(value) if is_code(value) else str(value).removeprefix("torch.")


def torch_value(name: str, annotation: Any) -> Any:
    """The torch dtype or device of that name; this is where torch is imported."""
    import torch

    if torch_kind(annotation) == DEVICE:
        return torch.device(name)
    return getattr(torch, name)
