"""Settings in layers: structures are filled field by field, and the last layer that speaks wins.

``type`` is resolved first. A layer that changes it discards what earlier layers set on that node,
but for the components that the new type has, too, such as a model's encoder; a layer that sets one
field never resets its siblings.
"""

import dataclasses
import inspect
import json
import typing
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from datetime import timedelta
from typing import Any

from textmill.config.code_names import CodeNames, UnknownCodeError, is_component, type_word
from textmill.config.foreign_names import setting_here
from textmill.config.parameters import MISSING, Parameter, settings_of
from textmill.config.registry import all_registries, find_name, suggest
from textmill.config.values.annotations import (
    PLAIN,
    bases_of,
    has_word,
    is_code_type,
    is_of,
    members,
    owners_of,
    structure_of,
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
    merged,
    shown,
    untyped,
)
from textmill.config.values.typed_values import (
    INVALID,
    SCALARS,
    StandIn,
    WrongTypeError,
    expect,
    from_word,
    is_quoted,
    one_of,
    torch_name,
)
from textmill.errors import Place, Problem, UserError

UNSUITED = {"holdout": "These rows are not divided: give valid_data rows of its own. "}
"""Settings that not every component of a kind has, with what to do without."""


def without_type(node: Entries) -> Entries:
    return _entries_of(node, ["type"], inside=False)


class Settings:
    """Reads nodes into typed values and resolves their layers; all that is wrong is collected.

    The type decides what a word means: ``no`` is text in a text field and False in a bool field.
    """

    def __init__(self, names: CodeNames | None = None) -> None:
        self.names = names or CodeNames()
        self.problems: list[Problem] = []
        self.notes: list[str] = []
        """What a change of type kept and discarded."""
        self.unknown: list[tuple[str, str]] = []
        """Settings that name code which a file may not have imported, each with the name."""
        self.code: Place | None = None
        """Where the ingredient at hand was written."""

    def fields(
        self, parameters: Sequence[Parameter], layers: Sequence[Entries], name: str
    ) -> dict[str, Any]:
        """One value for each parameter: its default, changed by the layers in order.

        Without either it is MISSING, what cannot be read is INVALID; both are problems.
        """
        self.refuse_unknown([parameter.name for parameter in parameters], layers, name)
        values = {}
        for parameter in parameters:
            key, dotted = parameter.name, f"{name}.{parameter.name}"
            nodes = [layer.entries[key] for layer in layers if key in layer.entries]
            kind = structure_of(parameter.annotation, parameter.default)
            if kind is not None:
                values[key] = self.layered(kind, parameter, nodes, dotted)
            elif nodes:
                values[key] = self.read(_joined(nodes, parameter), _type_of(parameter), dotted)
            else:
                values[key] = self._checked(parameter, dotted)
            if values[key] is MISSING:
                self.required(parameter, name, layers[-1].place if layers else self.code)
        return values

    def refuse_unknown(self, known: Sequence[str], layers: Sequence[Entries], name: str) -> None:
        for layer in layers:
            for key in layer.entries:
                if key not in known:
                    listed = f"It has: {', '.join(known)}." if known else "It has no settings."
                    node = layer.entries[key]
                    value = node.text if isinstance(node, Scalar) else ""
                    guess = setting_here(key, value, owner=name) or UNSUITED.get(key, "")
                    guess = guess or suggest(key, known)
                    text = f"{name} has no setting '{key}'. {guess}{listed}"
                    self.problem(text, layer.place_of(key))

    def _checked(self, parameter: Parameter, name: str) -> Any:
        """A default from code is taken as it is, but for what is plainly of another type."""
        if any(parameter.default is none for none in (MISSING, INVALID, None)):
            return parameter.default
        child = self.fresh()
        value = child.read(Value(parameter.default, self.code), parameter.annotation, name)
        kinds = members(parameter.annotation) or (parameter.annotation,)
        if all(kind in (*PLAIN, type(None)) for kind in kinds):
            self.problems += child.problems  # of another class it is certainly a mistake
        return parameter.default if child.problems else value

    def layered(self, kind: Any, parameter: Parameter, nodes: Sequence[Node], name: str) -> Any:
        """A dataclass or a component's Config, from its default and the layers that touch it."""
        annotation, base = parameter.annotation, parameter.default
        collected: list[Entries] = []
        for node in nodes:
            entries = as_entries(node)
            if not isinstance(entries, Entries):
                base, collected = self._replaced(node, kind, annotation, name), []
                kind = type(base) if dataclasses.is_dataclass(base) else kind
                continue
            named = self._named_type(entries, kind, annotation, name)
            if named is not None and named is not kind:
                before = base if dataclasses.is_dataclass(base) else kind
                collected = self.retyped((before, named), collected, name, entries)
                kind, base = named, MISSING
            collected.append(without_type(entries) if named is not None else entries)
        if not collected and base is not MISSING:
            return base
        if base is INVALID:
            return INVALID
        needed = has_word(kind) or any(parameter.required for parameter in settings_of(kind))
        if base is MISSING and not nodes and needed:
            return MISSING
        return self.made(kind, base, collected, name)

    def made(self, kind: Any, base: Any, layers: Sequence[Entries], name: str) -> Any:
        """An instance of the dataclass with every field resolved, or INVALID."""
        same = dataclasses.is_dataclass(base) and type(base) is kind
        values = self.fields(settings_of(base if same else kind), layers, name)
        if any(value is INVALID or value is MISSING for value in values.values()):
            return INVALID
        try:
            return kind(**values)
        except (ValueError, TypeError, UserError) as error:
            return self.problem(f"{name}: {error}", layers[-1].place if layers else None)

    def required(self, parameter: Parameter, owner: str, place: Place | None) -> None:
        """Notes a setting that has no default and that nobody gives."""
        name, wanted = f"{owner}.{parameter.name}", type_name(parameter.annotation)
        self.problem(f"{name}: wanted {wanted}, and no value is given. Set {name}=...", place)

    def structure(self, node: Node, annotation: Any, name: str) -> Any:
        """Reads a whole dataclass: an item of a list, a member of a union."""
        node = as_entries(node)
        owners = owners_of(annotation)
        if isinstance(node, Scalar) and not is_null(node) and concept_of(owners):
            node = Entries({"type": node}, node.place)  # an item is its type alone
        if not isinstance(node, Entries):
            wanted = f"{name}: wanted the settings of {type_name(annotation)}, found {shown(node)}."
            return self.problem(wanted, node.place)
        if "type" not in node.entries and any(map(inspect.isabstract, owners)):
            wanted = f"{name}: wanted the type of a {concept_of(owners)}, found none."
            return self.problem(wanted, node.place)
        return self.layered(
            structure_of(annotation, MISSING), Parameter(name, annotation), [node], name
        )

    def component(self, node: Entries, name: str) -> Any:
        kind = node.entries["type"]
        assert isinstance(kind, Scalar)
        try:
            found = self.names.find(kind.text, kind.place)
        except UnknownCodeError as error:
            self.unknown += [(name, kind.text)] if self.names.is_closed(kind.place) else []
            return self.problem(f"{name}.type: {error}", kind.place)
        if not is_component(found):
            return self.problem(f"{name}.type: '{kind.text}' is no component.", kind.place)
        return self.structure(node, found.Config, name)

    def _replaced(self, node: Node, kind: Any, annotation: Any, name: str) -> Any:
        if isinstance(node, Value) and dataclasses.is_dataclass(node.value):
            # One of the recipe's own may only look like what is wanted; a file could not name it.
            filed = find_name(getattr(node.value, "owner", None))
            if filed and not isinstance(node.value, bases_of(annotation) or kind):
                wanted = f"wanted the settings of {type_name(annotation)}"
                text = f"{name}: {wanted}, found those of the {filed[0].concept} {filed[1]}."
                return self.problem(text, node.place)
            return node.value
        word = isinstance(node, Scalar) and not is_null(node) and hasattr(kind, "owner")
        if word and not any(map(has_word, members(annotation) or (annotation,))):
            return self.problem(
                f"{name}: wanted settings, found {shown(node)}. "
                f"Another type is chosen with {name}.type={untyped(node)}.",
                node.place,
            )
        return self.read(node, annotation, name)

    def _named_type(self, entries: Entries, kind: Any, annotation: Any, name: str) -> Any:
        """The Config class that the layer's ``type`` names, or None when it names none."""
        node = entries.entries.get("type")
        own = any(field.name == "type" for field in dataclasses.fields(kind))
        if node is None or own or not hasattr(kind, "owner"):
            return None
        word = node.text if isinstance(node, Scalar) else str(getattr(node, "value", shown(node)))
        if word == type_word(kind.owner):
            return kind
        owners = owners_of(annotation) or (kind.owner,)
        filing = [r for r in all_registries().values() if r.files_any((*owners, kind.owner))]
        every = {n: registry.get(n) for registry in filing for n in registry.names()}
        found = {n: e for n, e in every.items() if isinstance(e, type) and issubclass(e, owners)}
        concept = concept_of(owners) or type_name(annotation)
        try:
            named: Any = self.names.find(word, node.place) if word[:1] == "@" else found[word]
        except (KeyError, UnknownCodeError) as error:
            if self.names.is_closed(node.place):
                self.unknown.append((name, word))
            listed = f"Known: {', '.join(sorted(found)) or 'none'}."
            text = f"no {concept} is named '{word}'. {suggest(word, found)}{listed}"
            self.problem(f"{name}.type: {error if word.startswith('@') else text}", node.place)
            return kind
        if not is_component(named) or not (annotation is Any or issubclass(named, owners)):
            self.problem(f"{name}.type: '{word}' is no {concept}.", node.place)
            return kind
        return named.Config

    def retyped(
        self, kinds: tuple[Any, Any], collected: Sequence[Entries], name: str, by: Entries
    ) -> list[Entries]:
        """What stays of a node where a layer gives it another type; notes say it, and what goes.

        It is what was set of a component, such as a model's encoder, that the new type has by the
        same name and of the same kind.
        """
        before, after = kinds
        both = _components(before) & _components(after)
        values = dict[str, Node]()
        if both and not isinstance(before, type):
            usual = {p.name: p.default for p in settings_of(type(before))}
            values = {
                p.name: Value(p.default, self.code)
                for p in settings_of(before)
                if (p.name, bases_of(p.annotation)) in both and p.default != usual[p.name]
            }
        fields = {field for field, _ in both}
        kept = [_entries_of(layer, fields, inside=True) for layer in collected]
        dropped = [_entries_of(layer, fields, inside=False) for layer in collected]
        node = by.entries["type"]
        word = node.text if isinstance(node, Scalar) else shown(node)
        change = f"{name}.type={word} ({node.place})"
        stays = dict.fromkeys([*values, *(field for layer in kept for field in layer.entries)])
        if stays:
            self.notes.append(f"{change} keeps {', '.join(f'{name}.{field}' for field in stays)}.")
        gone = [f"{p} ({place})" for layer in dropped for p, place in leaves(layer, name)]
        if any(layer.entries for layer in dropped):
            self.notes.append(f"{change} discards {', '.join(gone)}.")
        first = [Entries(values, self.code or by.place)] if values else []
        return [*first, *(layer for layer in kept if layer.entries)]

    def problem(self, message: str, place: Place | None) -> StandIn:
        """Notes something wrong and returns the stand-in."""
        self.problems.append(Problem(message, place))
        return INVALID

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
                raise UnknownCodeError(
                    f"'{node.text}' is code, which no run folder may name. If you trust it, add "
                    "--allow-code (allow_code=True)."
                )
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
        code = [at for at, kind in enumerate(text_last) if named and is_code_type(kind)]
        alone = code[0] if code else _only_scalar(node, text_last)
        if len(attempts) == 1 or alone is not None:
            self.problems += attempts[alone or 0]
            return INVALID
        raise WrongTypeError(_unquoted(node, kinds, name))

    def fresh(self) -> "Settings":
        """A reader for an attempt that may fail."""
        child = Settings(self.names)
        child.unknown = self.unknown
        return child

    def _sequence(self, node: Node, origin: type[Any], annotation: Any, name: str) -> Any:
        given = node.value if isinstance(node, Value) else None
        if isinstance(given, Sequence | Set) and not isinstance(given, str):
            items = tuple(Value(item, node.place) for item in given)
            node = Items(items, node.place or Place("code"))
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
        if issubclass(origin, frozenset | set):
            return origin(found)
        return found if issubclass(list, origin) else tuple(found)

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
        given = node.value if isinstance(node, Value) else None
        if isinstance(given, Mapping) and is_of(given, annotation):
            return given
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


def _components(config: Any) -> set[tuple[str, tuple[Any, ...]]]:
    """The names of the fields that hold components, each with the settings that it takes."""
    if not dataclasses.is_dataclass(config):
        return set()
    fields = settings_of(config)
    return {(p.name, bases_of(p.annotation)) for p in fields if owners_of(p.annotation)}


def _entries_of(layer: Entries, fields: Collection[str], *, inside: bool) -> Entries:
    rest = {key: item for key, item in layer.entries.items() if (key in fields) == inside}
    return dataclasses.replace(layer, entries=rest)


def leaves(node: Node, name: str) -> Iterator[tuple[str, Place | None]]:
    """Every setting that a layer gives under a name, dotted, with its place."""
    if isinstance(node, Entries) and node.entries:
        for key, item in node.entries.items():
            yield from leaves(item, f"{name}.{key}")
    else:
        yield name, node.place


def _joined(nodes: Sequence[Node], parameter: Parameter) -> Node:
    """One node of those of all layers; dotted words change entries of a default."""
    node: Node | None = None
    for item in nodes:
        if node is None and isinstance(item, Entries) and item.dotted:
            node = as_entries(Value(parameter.default, item.place))
        node = merged(node, item)
    assert node is not None
    return node


def _type_of(parameter: Parameter) -> Any:
    """The annotation, or the type of the default if there is none."""
    untyped_parameter = parameter.annotation in (inspect.Parameter.empty, Any)
    has_type = untyped_parameter and parameter.default is not None
    return type(parameter.default) if has_type else parameter.annotation


def concept_of(owners: tuple[type[Any], ...]) -> str | None:
    """What people call what the owners' subclasses are: the registry's word, if one has any yet."""
    for registry in all_registries().values():
        if registry.files_any(owners):
            return registry.concept
    return None
