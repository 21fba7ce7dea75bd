"""YAML read as places and words, and plain data written back.

Only mappings, lists and words are read. Tags, anchors and aliases are refused: no file of a recipe
can name code, and none can grow when it is walked.
"""

import re
from collections.abc import Iterator
from pathlib import Path
from stat import S_ISREG
from typing import Any

import yaml
from typing_extensions import override

from textmill.config.registry import suggest_path
from textmill.config.values.raw_values import Entries, Items, Node, Scalar, untyped_word
from textmill.errors import Place, UserError, worded

MAX_BYTES = 256_000  # a run's own has about 5,000; so many are read in under half a second
MAX_DEPTH = 50
LONGEST_WORD = 200
"""Characters of a word that an error shows: a value may be all rows of a table."""

TUPLE = "tag:yaml.org,2002:python/tuple"
"""A list in files that Python's yaml wrote, as Model Garden's are."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # the C parser is 20 times faster


class Word:
    """One ``a.b=c`` of a command line: the whole text, the dotted path, the value as written."""

    def __init__(self, text: str, path: tuple[str, ...], node: Node, place: Place) -> None:
        self.text, self.path, self.node, self.place = text, path, node, place

    @property
    def dotted(self) -> str:
        return ".".join(self.path)

    def tree(self, path: tuple[str, ...] | None = None) -> Entries:
        """The word as nested entries, under its own path or a longer one."""
        node: Node = self.node
        for key in reversed(path or self.path):
            node = Entries({key: node}, self.place, dotted=True, key_places={key: self.place})
        assert isinstance(node, Entries)
        return node


def read_source(path: Path, most: int | None = None) -> bytes:
    """The bytes of a regular file, or of a pipe that the shell hands over (``<(command)``)."""
    try:
        if not (S_ISREG(path.stat().st_mode) or path.is_relative_to("/dev")):
            raise UserError(f"{path}: cannot be read: it is not a regular file.")
        with path.open("rb") as file:
            return file.read(-1 if most is None else most)
    except OSError as error:
        gone = isinstance(error, FileNotFoundError)
        near = suggest_path(path, suffixes=(".yaml", ".yml", ".py")) if gone else ""
        raise UserError(f"{path}: cannot be read: {error.strerror}. {near}".rstrip()) from error


def read_yaml(path: Path) -> Entries:
    """Reads one mapping with its places; an empty file is an empty mapping."""
    data = read_source(path, MAX_BYTES + 1)
    if len(data) > MAX_BYTES:
        raise UserError(f"{path}: larger than {MAX_BYTES} bytes; a file of settings is small.")
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}).") from error
    node = yaml_nodes(text, source=str(path))
    if node is None:
        return Entries({}, Place(str(path)))
    if not isinstance(node, Entries):
        raise UserError(f"{node.place}: wanted a mapping of names to settings.")
    return node


def yaml_nodes(text: str, *, source: str) -> Entries | Items | Scalar | None:
    """The one document of ``text`` as nodes, or None when it is empty."""
    try:
        return _Reader(text, source).document()
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        place = _place(source, mark) if mark else Place(source)
        raise UserError(f"{place}: not YAML: {error.problem or error.context}.") from error
    except yaml.YAMLError as error:
        raise UserError(f"{source}: not YAML: {str(error).splitlines()[0]}.") from error


def _place(source: str, mark: Any) -> Place:
    return Place(source, mark.line + 1, mark.column + 1)


class _Reader:
    """Builds nodes from the parser's events, so that nothing is ever resolved or constructed."""

    def __init__(self, text: str, source: str) -> None:
        self.source = source
        self.events: Iterator[Any] = yaml.parse(text, Loader=_Loader)

    def document(self) -> Entries | Items | Scalar | None:
        found: Entries | Items | Scalar | None = None
        for event in self.events:
            if isinstance(event, yaml.DocumentStartEvent):
                if found is not None:
                    self.refuse(event, "a second document; a file holds one.")
                found = self.node(next(self.events), 1)
        empty = isinstance(found, Scalar) and not found.quoted and found.text == ""
        return None if empty else found

    def node(self, event: Any, depth: int) -> Entries | Items | Scalar:
        place = _place(self.source, event.start_mark)
        if isinstance(event, yaml.AliasEvent) or event.anchor is not None:
            sign = "*" if isinstance(event, yaml.AliasEvent) else "&"
            self.refuse(event, f"'{sign}{event.anchor}': anchors and aliases are not read here.")
        plain = "!" if isinstance(event, yaml.ScalarEvent) else TUPLE
        if event.tag not in (None, plain):
            self.refuse(event, f"the tag '{event.tag}' is not read here; write the plain value.")
        if depth > MAX_DEPTH:
            self.refuse(event, f"nested more than {MAX_DEPTH} levels deep.")
        if isinstance(event, yaml.ScalarEvent):
            return Scalar(event.value, place, quoted=event.style in tuple("'\"|>"))
        if isinstance(event, yaml.SequenceStartEvent):
            return Items(tuple(self.items(depth)), place)
        return self.mapping(place, depth)

    def items(self, depth: int) -> Iterator[Node]:
        while not isinstance(event := next(self.events), yaml.SequenceEndEvent):
            yield self.node(event, depth + 1)

    def mapping(self, place: Place, depth: int) -> Entries:
        entries: dict[str, Node] = {}
        places: dict[str, Place] = {}
        while not isinstance(event := next(self.events), yaml.MappingEndEvent):
            key = self.node(event, depth + 1)
            if not isinstance(key, Scalar):
                self.refuse(event, "a key must be a word.")
                raise AssertionError
            if key.text in entries:
                self.refuse(event, f"'{key.text}' is written twice, first at {places[key.text]}.")
            places[key.text] = key.place
            entries[key.text] = self.node(next(self.events), depth + 1)
        return Entries(entries, place, key_places=places)

    def refuse(self, event: Any, why: str) -> None:
        raise UserError(f"{_place(self.source, event.start_mark)}: {why}")


def parse_word(word: str) -> Word:
    """Reads ``a.b=c``; a value that begins like YAML's flow syntax is read by it."""
    place = Place(typed_place(word))
    if not is_utf8(word):
        raise UserError(
            f"{place}: not UTF-8 text, but files of settings are UTF-8. Rename what it names."
        )
    name, equals, text = word.partition("=")
    path = tuple(part.strip() for part in name.removeprefix("--").split("."))
    if not equals or not all(path):
        raise UserError(f"{place}: wanted name.setting=value.")
    return Word(word, path, _word_value(text, place), place)


def typed_place(word: str = "") -> str:
    """Where a setting was given that stands in no file."""
    place = worded("command line", "overrides")
    if len(word) > LONGEST_WORD:
        word = f"{word[:LONGEST_WORD]}…"
    return f"{place}: {word}" if word else place


def is_utf8(text: str) -> bool:
    r"""Whether a text can be written as UTF-8; a name of a file that is not has other bytes."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _word_value(text: str, place: Place) -> Node:
    first, last = text[:1], text[-1:]
    if first and first + last in ("[]", "{}"):
        try:
            return _at(yaml_nodes(text, source=place.source), place, raw=text)
        except UserError as error:
            if "not YAML" not in str(error):
                raise UserError(f"{place}: {str(error).split(': ', 2)[-1]}") from error
        quoted = re.sub(r"(?<=[\[,: ])@[\w.]+", r"'\g<0>'", text)  # YAML has no @ there
        if quoted != text:
            return _word_value(quoted, place)
    elif len(text) > 1 and first == last and first in "'\"":
        try:
            node = yaml_nodes(text, source=place.source)
        except UserError:
            node = None
        if isinstance(node, Scalar):
            return Scalar(node.text, place, quoted=True)
    return Scalar(text, place, quoted=text == "")


def _at(node: Node | None, place: Place, *, raw: str | None = None) -> Node:
    """The same node with the command-line word as its place everywhere."""
    if isinstance(node, Items):
        return Items(tuple(_at(item, place) for item in node.items), place, raw)
    if isinstance(node, Entries):
        items = (_spaced(key, item) for key, item in node.entries.items())
        return Entries({key: _at(item, place) for key, item in items}, place, raw)
    assert isinstance(node, Scalar)
    return Scalar(node.text, place, node.quoted)


def _spaced(key: str, item: Node) -> tuple[str, Node]:
    """An entry of a command-line word, where ``{a:b}`` means ``{a: b}``; YAML has it a key."""
    name, colon, text = key.partition(":")
    if name and colon and text and isinstance(item, Scalar) and item.text == "" and not item.quoted:
        return name, Scalar(text, item.place)
    return key, item


class _Dumper(yaml.SafeDumper):
    """Writes what ``read_yaml`` reads back equal: no aliases, text quoted where it must be."""

    @override
    def ignore_aliases(self, data: Any) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = None if isinstance(untyped_word(text), str) else "'"
    if not text.isprintable():
        style = '"'  # other styles fold line breaks, and some controls read back as spaces
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Dumper.add_representer(str, _represent_text)


def dump_yaml(data: Any) -> str:
    """Plain data (dicts, lists, text, numbers, bools, None) as block YAML in the given order."""
    return yaml.dump(data, Dumper=_Dumper, sort_keys=False, allow_unicode=True, width=100)
