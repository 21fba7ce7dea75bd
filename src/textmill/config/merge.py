"""Settings in layers: structures are filled field by field, and the last layer that speaks wins.

``type`` is resolved first. A layer that changes it discards what earlier layers set on that node,
but for the components that the new type has, too, such as a model's encoder; a layer that sets one
field never resets its siblings.
"""

import dataclasses
import inspect
import typing
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from typing_extensions import override

from textmill.config.code_names import CodeNames, UnknownCodeError, is_component, type_word
from textmill.config.foreign_names import setting_here
from textmill.config.parameters import MISSING, Parameter, settings_of
from textmill.config.registry import all_registries, find_name, suggest
from textmill.config.values.annotations import (
    PLAIN,
    has_word,
    members,
    torch_kind,
    type_name,
    unwrapped,
)
from textmill.config.values.raw_values import (
    Entries,
    Node,
    Scalar,
    Value,
    as_entries,
    is_null,
    merged,
    shown,
    untyped,
)
from textmill.config.values.typed_values import INVALID, Values, torch_value
from textmill.errors import Place, UserError

UNSUITED = {"holdout": "These rows are not divided: give valid_data rows of its own. "}
"""Settings that not every component of a kind has, with what to do without."""


def without_type(node: Entries) -> Entries:
    """The entries but ``type``."""
    rest = {key: item for key, item in node.entries.items() if key != "type"}
    return dataclasses.replace(node, entries=rest)


class Settings(Values):
    """Resolves layers of nodes into values; notes tell what a change of type kept and discarded."""

    def __init__(self, names: CodeNames | None = None) -> None:
        super().__init__(names)
        self.notes: list[str] = []
        self.code: Place | None = None  # where the ingredient at hand was written

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

    @override
    def structure(self, node: Node, annotation: Any, name: str) -> Any:
        """Reads a whole dataclass: an item of a list, a member of a union."""
        node = as_entries(node)
        if isinstance(node, Scalar) and not is_null(node) and concept_of(_owners(annotation)):
            node = Entries({"type": node}, node.place)  # an item is its type alone
        if not isinstance(node, Entries):
            wanted = f"{name}: wanted the settings of {type_name(annotation)}, found {shown(node)}."
            return self.problem(wanted, node.place)
        if "type" not in node.entries and any(map(inspect.isabstract, _owners(annotation))):
            wanted = f"{name}: wanted the type of a {concept_of(_owners(annotation))}, found none."
            return self.problem(wanted, node.place)
        return self.layered(
            structure_of(annotation, MISSING), Parameter(name, annotation), [node], name
        )

    @override
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
            if filed and not isinstance(node.value, _bases(annotation) or kind):
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
        owners = _owners(annotation) or (kind.owner,)
        found = _named_subclasses(owners, kind.owner)
        said = concept_of(owners) or type_name(annotation)
        try:
            named = self.names.find(word, node.place) if word.startswith("@") else found[word]
        except (KeyError, UnknownCodeError) as error:
            if self.names.is_closed(node.place):
                self.unknown.append((name, word))
            listed = f"Known: {', '.join(sorted(found)) or 'none'}."
            text = f"no {said} is named '{word}'. {suggest(word, found)}{listed}"
            self.problem(f"{name}.type: {error if word.startswith('@') else text}", node.place)
            return kind
        if not is_component(named) or not (annotation is Any or issubclass(named, owners)):
            self.problem(f"{name}.type: '{word}' is no {said}.", node.place)
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
                if (p.name, _bases(p.annotation)) in both and p.default != usual[p.name]
            }
        fields = {field for field, _ in both}
        kept = [_entries_of(layer, fields, inside=True) for layer in collected]
        dropped = [_entries_of(layer, fields, inside=False) for layer in collected]
        node = by.entries["type"]
        word = node.text if isinstance(node, Scalar) else shown(node)
        said = f"{name}.type={word} ({node.place})"
        stays = dict.fromkeys([*values, *(field for layer in kept for field in layer.entries)])
        if stays:
            self.notes.append(f"{said} keeps {', '.join(f'{name}.{field}' for field in stays)}.")
        gone = [f"{p} ({place})" for layer in dropped for p, place in leaves(layer, name)]
        if any(layer.entries for layer in dropped):
            self.notes.append(f"{said} discards {', '.join(gone)}.")
        first = [Entries(values, self.code or by.place)] if values else []
        return [*first, *(layer for layer in kept if layer.entries)]


def _components(config: Any) -> set[tuple[str, tuple[Any, ...]]]:
    """The names of the fields that hold components, each with the settings that it takes."""
    if not dataclasses.is_dataclass(config):
        return set()
    fields = settings_of(config)
    return {(p.name, _bases(p.annotation)) for p in fields if _owners(p.annotation)}


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


def structure_of(annotation: Any, default: Any) -> Any:
    """The dataclass that a setting is filled as, or None when it is one value."""
    if dataclasses.is_dataclass(default) and not isinstance(default, type):
        return type(default)
    bases = _bases(annotation)
    return bases[0] if bases else None


def _bases(annotation: Any) -> tuple[Any, ...]:
    """The dataclasses among the annotation and the members of its union."""
    annotation = unwrapped(annotation)
    union = members(annotation) or (annotation,)
    return tuple(
        a for a in map(unwrapped, union) if isinstance(a, type) and dataclasses.is_dataclass(a)
    )


def _owners(annotation: Any) -> tuple[type[Any], ...]:
    return tuple(base.owner for base in _bases(annotation) if hasattr(base, "owner"))


def _named_subclasses(owners: tuple[type[Any], ...], current: Any) -> dict[str, Any]:
    """Registered subclasses of the owners, by name; a registry that files one is read whole."""
    filing = [each for each in all_registries().values() if each.files_any((*owners, current))]
    found = {name: registry.get(name) for registry in filing for name in registry.names()}
    return {n: e for n, e in found.items() if isinstance(e, type) and issubclass(e, owners)}


def concept_of(owners: tuple[type[Any], ...]) -> str | None:
    """What people call what the owners' subclasses are: the registry's word, if one has any yet."""
    for registry in all_registries().values():
        if registry.files_any(owners):
            return registry.concept
    return None


def to_torch(value: Any, annotation: Any) -> Any:
    """The value as an ingredient receives it: dtypes and devices become torch's objects."""
    annotation = unwrapped(annotation)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            parameter.name: made
            for parameter in settings_of(value)
            if (made := to_torch(parameter.default, parameter.annotation)) is not parameter.default
        }
        return dataclasses.replace(value, **changed) if changed else value
    if isinstance(value, str):
        kinds = [kind for kind in members(annotation) or (annotation,) if torch_kind(kind)]
        return torch_value(value, kinds[0]) if kinds else value
    if isinstance(value, list | tuple):
        inner = typing.get_args(annotation)[:1] or (Any,)
        made = [to_torch(item, inner[0]) for item in value]
        same = all(a is b for a, b in zip(made, value, strict=True))
        return value if same else type(value)(made)
    return value
