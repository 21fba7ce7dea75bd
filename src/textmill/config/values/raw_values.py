"""What was written, before its type is known: scalars stay text, and everything knows its place."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textmill.errors import Place


@dataclass(frozen=True)
class Scalar:
    """A word as written: ``1e-3`` is text until a type asks for it. Quoted, it is never null."""

    text: str
    place: Place
    quoted: bool = False


@dataclass(frozen=True)
class Items:
    """A list. ``raw`` is its text when it was one word of a command line."""

    items: tuple["Node", ...]
    place: Place
    raw: str | None = None


@dataclass(frozen=True)
class Entries:
    """A mapping. ``dotted``: it stands for the dots of ``a.b=c`` and adds to what it meets."""

    entries: Mapping[str, "Node"]
    place: Place
    raw: str | None = None
    dotted: bool = False
    key_places: Mapping[str, Place] = field(default_factory=dict)

    def place_of(self, key: str) -> Place:
        return self.key_places.get(key, self.place)


@dataclass(frozen=True)
class Value:
    """A Python object that code gave."""

    value: Any
    place: Place | None = None


Node = Scalar | Items | Entries | Value


def as_entries(node: Node) -> Node:
    """A mapping that code gave as entries of values; another node as it is."""
    if not (isinstance(node, Value) and isinstance(node.value, Mapping)):
        return node
    place = node.place or Place("code")
    return Entries({str(k): Value(v, node.place) for k, v in node.value.items()}, place)


_NULLS = ("", "null", "~", "Null", "NULL")


def is_null(node: Node) -> bool:
    """Whether the node says nothing: ``null``, ``~`` or an empty place in YAML, None in code."""
    if isinstance(node, Scalar):
        return not node.quoted and node.text in _NULLS
    return isinstance(node, Value) and node.value is None


def untyped(node: Node) -> Any:
    """The node as plain data where no type is asked for: null, bool, int, float, else text."""
    if isinstance(node, Value):
        return node.value
    if isinstance(node, Items):
        return [untyped(item) for item in node.items]
    if isinstance(node, Entries):
        return {key: untyped(item) for key, item in node.entries.items()}
    return node.text if node.quoted else untyped_word(node.text)


def untyped_word(text: str) -> Any:
    """What a plain word means where no type is asked for."""
    if text in _NULLS:
        return None
    if text in ("true", "True", "false", "False"):
        return text in ("true", "True")
    if text.lstrip("+-") in (".inf", ".nan"):
        return float(text.replace(".", ""))
    if text[0].isdigit() or text[0] in "+-.":
        for kind in (int, float):
            try:
                return kind(text)
            except ValueError:
                continue
    return text


def merged(first: Node | None, second: Node) -> Node:
    """Two nodes of one command line in one: dotted words join, otherwise the later wins."""
    if not (isinstance(first, Entries) and isinstance(second, Entries) and second.dotted):
        return second
    entries = dict(first.entries)
    for key, node in second.entries.items():
        entries[key] = merged(entries.get(key), node)
    places = {**first.key_places, **second.key_places}
    return Entries(entries, first.place, dotted=first.dotted, key_places=places)


def shown(node: Node) -> str:
    """The node as an error shows it: short, on one line."""
    text = repr(node.text) if isinstance(node, Scalar) else _show_data(untyped(node))
    return text if len(text) <= 60 else text[:57] + "..."


def _show_data(data: Any) -> str:
    if isinstance(data, Mapping):
        return "{" + ", ".join(f"{key}: {_show_data(item)}" for key, item in data.items()) + "}"
    if isinstance(data, Sequence) and not isinstance(data, str):
        return "[" + ", ".join(_show_data(item) for item in data) + "]"
    return repr(data) if isinstance(data, str) else str(data)


def written(data: Any) -> str:
    """Plain data on one line, as a person writes it in YAML or on the command line."""
    if isinstance(data, list):
        return "[" + ", ".join(map(written, data)) + "]"
    if isinstance(data, dict):
        return "{" + ", ".join(f"{key}: {written(item)}" for key, item in data.items()) + "}"
    if data is None or isinstance(data, bool):
        return "null" if data is None else str(data).lower()
    return str(data)
