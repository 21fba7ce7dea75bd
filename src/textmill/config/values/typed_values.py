"""Words as scalars of a type; and typed values as plain data that reads back equal."""

import dataclasses
import enum
import re
from collections.abc import Callable, Mapping, Sequence, Set
from datetime import timedelta
from fractions import Fraction
from functools import cache
from pathlib import Path
from typing import Any

from typing_extensions import override

from textmill.config.code_names import code_name, is_code, type_word
from textmill.config.values.annotations import DEVICE, has_word
from textmill.config.values.raw_values import Node, Scalar, Value, is_null, shown

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
    listed = ", ".join(map(repr, options) if names is None else map(str, names))
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
