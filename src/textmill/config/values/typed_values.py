"""From what was written to typed values, and from typed values to plain data that reads back equal.

The type decides what a word means: ``no`` is text in a text field and False in a bool field.
"""

import dataclasses
import enum
import inspect
import json
import re
import typing
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import timedelta
from fractions import Fraction
from functools import cache
from pathlib import Path
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
from textmill.errors import Place, Problem

_UNITS = {
    "d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1,
}  # fmt: skip
_UNIT_WORDS = {
    "day": "d", "days": "d", "hour": "h", "hours": "h", "min": "m", "mins": "m",
    "minute": "m", "minutes": "m",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
}  # fmt: skip
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)")


def parse_duration(text: str) -> timedelta:
    """Reads ``20m``, ``1h30m``, ``2d``, ``15 min``, ``90 seconds``."""
    rest = text.strip().lower()
    sign, rest = (-1, rest[1:]) if rest.startswith("-") else (1, rest)
    micros, position = Fraction(0), 0
    while match := _DURATION.match(rest, position):
        unit = _UNIT_WORDS.get(match[2], match[2])
        if unit not in _UNITS:
            break
        micros += Fraction(match[1]) * _UNITS[unit]
        position = match.end()
    if position == 0 or rest[position:].strip():
        raise ValueError(f"wanted a duration like '20m', '1h30m' or '2d', found {text!r}.")
    try:
        return timedelta(microseconds=sign * round(micros))
    except OverflowError as error:
        raise ValueError(f"the duration {text!r} is too long.") from error


def format_duration(value: timedelta) -> str:
    """The shortest text that ``parse_duration`` reads back exactly."""
    total = value // timedelta(microseconds=1)
    sign, total = ("-", -total) if total < 0 else ("", total)
    parts = []
    for unit, size in _UNITS.items():
        count, total = divmod(total, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + ("".join(parts) or "0s")


_DTYPES = (
    "float32", "float64", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2",
    "complex64", "complex128",
    "uint8", "int8", "int16", "int32", "int64", "bool",
)  # fmt: skip
_DTYPE_ALIASES = {
    "float": "float32", "double": "float64", "half": "float16", "int": "int32", "long": "int64",
}  # fmt: skip
_DEVICE = re.compile(r"(auto|cpu|cuda|mps|xpu|hpu|meta|mtia)(:\d+)?")
_TRUE, _FALSE = ("true", "yes", "on"), ("false", "no", "off")


class WrongTypeError(Exception):
    """Raised by all readers: the node is none of the type; a message says more than 'wanted'."""

    def __init__(self, message: str | None = None) -> None:
        super().__init__(message or "")
        self.message = message


def is_quoted(node: Node) -> bool:
    """Whether a person put the word in quotes."""
    return isinstance(node, Scalar) and node.quoted


def expect(value: Any, good: bool) -> Any:
    """The value, where the node is good for its type."""
    if not good:
        raise WrongTypeError
    return value


def _bool(node: Node, _: type[Any]) -> bool:
    if isinstance(node, Value):
        return bool(expect(node.value, isinstance(node.value, bool)))
    word = _text(node).lower()
    return bool(expect(word in _TRUE, word in _TRUE + _FALSE))


@cache
def _adapters() -> dict[type[Any], Any]:
    """Pydantic's readers, imported where a number is read: ``textmill --help`` reads none."""
    from pydantic import TypeAdapter

    return {int: TypeAdapter(int), float: TypeAdapter(float)}


def _number(node: Node, kind: type[Any]) -> Any:
    given = node.value if isinstance(node, Value) else _text(node).strip()
    if isinstance(given, bool):
        raise WrongTypeError
    if isinstance(given, str) and given.lstrip("+-") in (".inf", ".nan"):
        given = given.replace(".", "")
    try:
        return _adapters()[kind].validate_python(given)
    except ValueError as error:
        raise WrongTypeError from error


def _string(node: Node, _: type[Any]) -> str:
    if isinstance(node, Value):
        return str(expect(node.value, isinstance(node.value, str | Path)))
    return _text(node)


def _path(node: Node, _: type[Any]) -> Path:
    if isinstance(node, Value):
        return Path(expect(node.value, isinstance(node.value, str | Path)))
    text = _text(node)
    if text and is_null(node):
        raise WrongTypeError(
            f"wanted pathlib.Path, found {text}. For no file set the whole ingredient to null, as "
            f"valid_data=null; a file of that name is ./{text}."
        )
    return Path(expect(text, text != ""))


def _text(node: Node) -> str:
    if isinstance(node, Scalar):
        return node.text
    raw = None if isinstance(node, Value) else node.raw
    if raw is None:
        raise WrongTypeError
    return raw


def _enum(node: Node, kind: type[Any]) -> Any:
    if isinstance(node, Value) and isinstance(node.value, kind):
        return node.value
    by_value = {member.value: member for member in kind}
    return one_of(
        node, {**by_value, **{member.name: member for member in kind}}, names=list(kind.__members__)
    )


def one_of(node: Node, options: Mapping[Any, Any], names: Sequence[Any] | None = None) -> Any:
    """The option that the word means."""
    text = str(node.value) if isinstance(node, Value) else _text(node)
    ordered = sorted(options, key=lambda option: isinstance(option, str) != is_quoted(node))
    for option in ordered:
        if text == str(option) or (isinstance(option, bool) and text == str(option).lower()):
            return options[option]
        if option is None and is_null(node):
            return None
    listed = ", ".join(
        repr(option) if names is None else str(option) for option in names or options
    )
    raise WrongTypeError(f"wanted one of {listed}, found {shown(node)}.")


def _duration(node: Node, _: type[Any]) -> timedelta:
    if isinstance(node, Value):
        value: timedelta = expect(node.value, isinstance(node.value, timedelta))
        return value
    try:
        return parse_duration(_text(node))
    except ValueError as error:
        raise WrongTypeError(str(error)) from error


def from_word(node: Scalar, kind: Any) -> Any:
    """A value of a class that has a one-word form."""
    try:
        return kind.parse(node.text)
    except ValueError as error:
        raise WrongTypeError(str(error)) from error


def torch_name(node: Node, kind: str | None) -> str:
    """The name of a dtype or device, as torch has it; torch is not imported."""
    text = str(node.value) if isinstance(node, Value) else _text(node)
    text = text.removeprefix("torch.")
    if kind == DEVICE:
        if not _DEVICE.fullmatch(text):
            raise WrongTypeError(f"wanted a device like 'cpu' or 'cuda:0', found {shown(node)}.")
        return text
    text = _DTYPE_ALIASES.get(text, text)
    if text not in _DTYPES:
        raise WrongTypeError(f"wanted a dtype, one of {', '.join(_DTYPES)}; found {shown(node)}.")
    return text


SCALARS: tuple[tuple[Any, Callable[[Node, type[Any]], Any]], ...] = (
    (enum.Enum, _enum),
    (bool, _bool),
    (int | float, _number),
    (str, _string),
    (Path, _path),
    (timedelta, _duration),
)


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
    """Reads nodes into typed values; what is wrong is collected in ``problems``, all of it."""

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
        origin: Any = typing.get_origin(annotation) or annotation
        try:
            if (union := members(annotation)) is not None:
                return self._union(node, union, name)
            if annotation in (Any, inspect.Parameter.empty):
                return self._anything(node, name)
            if annotation in (None, type(None)):
                return expect(None, is_null(node))
            if origin is typing.Literal:
                return one_of(node, {option: option for option in typing.get_args(annotation)})
            if torch_kind(annotation):
                return torch_name(node, torch_kind(annotation))
            if not isinstance(origin, type):
                return untyped(node)
            spelled = origin in (bool, timedelta) or has_word(origin)  # as a file has it
            if spelled and isinstance(node, Value) and isinstance(node.value, str):
                node = Scalar(node.value, node.place or Place("code"), quoted=True)
            for kinds, reader in SCALARS:
                if issubclass(origin, kinds):
                    return reader(node, origin)
            if is_code_type(annotation) and isinstance(node, Scalar):
                return self._code(node, name)
            if issubclass(origin, Mapping):
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
        except WrongTypeError as error:
            wanted = f"{name}: wanted {type_name(annotation)}, found {shown(node)}."
            return self.problem(f"{name}: {error.message}" if error.message else wanted, node.place)

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
