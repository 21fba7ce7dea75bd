"""The plan: what will be built, from what, with which settings; every problem beforehand."""

import dataclasses
import enum
from collections.abc import Collection, Iterable, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import timedelta
from pathlib import PurePath
from typing import Any

from textmill.config.code_names import CodeNames, UnknownCodeError, is_code, type_word
from textmill.config.component import Config, Given
from textmill.config.foreign_names import class_here, setting_here
from textmill.config.ingredient import (
    EVALUATION_DATA,
    STANDARD,
    BuiltFrom,
    IngredientTable,
    Like,
    as_config,
    dependencies_of,
)
from textmill.config.merge import Settings, leaves, without_type
from textmill.config.parameters import MISSING, Parameter, settings_of
from textmill.config.planning.overrides import Names
from textmill.config.planning.session import Session
from textmill.config.planning.wiring import (
    IngredientNode,
    Wiring,
    add_dependencies,
    produced,
    reached,
    wire,
)
from textmill.config.registry import find_name, for_ingredient, suggest
from textmill.config.values.annotations import fits, has_word, hints, type_name
from textmill.config.values.raw_values import Entries, Scalar, Value, is_null, shown
from textmill.config.values.raw_values import Node as Written
from textmill.config.values.typed_values import INVALID, plain
from textmill.config.values.yaml_files import dump_yaml, typed_place, yaml_nodes
from textmill.errors import Place, PlanError, Problem, SeveralError, UserError, worded

ALWAYS = ("env", "xp", "entry_point")
_LEAVES = (bool, int, float, str, enum.Enum, timedelta, PurePath, type(None))


@dataclass
class Plan:
    """What will be built, in which order, with which settings."""

    table: IngredientTable
    targets: tuple[str, ...]
    order: tuple[str, ...] = ()
    settings: dict[str, Any] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    nodes: dict[str, IngredientNode] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    swaps: dict[str, str] = field(default_factory=dict)
    meant: dict[str, str] = field(default_factory=dict)
    """The setting that each word meant whose name was the end of one, as ``lr``."""
    given: frozenset[str] = frozenset()
    """The settings that files and the command line give, by their dotted names."""
    unknown: list[tuple[str, str]] = field(default_factory=list)
    """Settings of a run's file that name code which is not here, each with the name."""

    def start(self, provided: Mapping[str, object] | None = None) -> Session:
        """Begins to build. ``provided`` stands for ingredients that exist already: env, xp, ..."""
        return Session(self.nodes, provided or {})


def make_plan(
    table: IngredientTable,
    *,
    defaults: IngredientTable,
    layers: Sequence[Entries] = (),
    words: Sequence[str] = (),
    targets: Sequence[str] = (),
    always: Iterable[str] = ALWAYS,
    draft: bool = False,
    closed: Collection[str] = (),
) -> Plan:
    """Plans what the targets reach.

    Args:
        table: The recipe's ingredients.
        defaults: The library's, for names the recipe does not define.
        layers: Settings from files, the first the weakest.
        words: ``name.setting=value`` of the command line, stronger than all files.
        targets: The ingredients an entry point asks for.
        always: Names that the run provides.
        draft: The plan keeps its problems: help shows incomplete recipes too.
        closed: The files among those of the layers for which nothing is imported.

    Raises:
        PlanError: With every problem found; not of a draft.
    """
    names = Names(table, defaults, layers, tuple(always))
    bare = names.read_words(words)
    if "trainer" in targets:  # a run is evaluated on data that its trainer may not take
        targets = [*targets, *filter(names.defined, EVALUATION_DATA)]
    if bare:
        whole = _Planner(names, closed)  # a word may mean what these targets do not reach
        defined = [name for name in STANDARD if name in names.known and names.defined(name)]
        for name in (*(target for target in targets if names.defined(target)), *defined):
            whole.visit(name, ())
        near = reached(whole.nodes, targets)
        first = [name for name in whole.order if name in near]
        names.place_bare_words(bare, whole.dotted(first), whole.dotted(whole.order))
    planner = _Planner(names, closed)
    for target in targets:
        if names.defined(target):
            planner.visit(target, ())
        else:
            planner.missing.setdefault(target, [])
    plan = planner.finished(targets)
    if plan.problems and not draft:
        raise PlanError(plan.problems)
    return plan


class _Planner:
    """Walks from the targets to everything they need, and notes what is wrong on the way."""

    def __init__(self, names: Names, closed: Collection[str]) -> None:
        self.names = names
        self.settings = Settings(CodeNames(names.table.module, closed))
        self.problems: list[Problem] = self.settings.problems
        self.notes: list[str] = self.settings.notes
        self.resolved: dict[str, IngredientNode] = {}
        self.changed: set[str] = set()  # ingredients that are of another type than the recipe says
        self.nodes: dict[str, IngredientNode] = {}
        self.order: list[str] = []
        self.missing: dict[str, list[str]] = {}

    def dotted(self, names: Iterable[str]) -> list[str]:
        found: list[str] = []
        for node in (self.nodes[name] for name in names):
            for key, value in node.settings.items():
                known = value is not MISSING and value is not INVALID
                found += _dotted(plain(value) if known else None, f"{node.name}.{key}")
        return found

    def visit(self, name: str, path: tuple[str, ...]) -> None:
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            place = self.nodes[name].ingredient.place
            self.problems.append(
                Problem(f"ingredients need each other in a circle: {circle}.", place)
            )
            return
        if name in self.nodes or name not in self.names.known:
            return
        node = self.nodes[name] = self.node(name)
        for parameter, (wanted, declared) in node.wiring.dependencies.items():
            if self.names.defined(wanted):
                self.visit(wanted, (*path, name))
                self.check_fit(node, parameter, wanted, declared)
            else:
                self.missing.setdefault(wanted, []).append(name)
        self.order.append(name)

    def check_fit(
        self, node: IngredientNode, parameter: str, wanted: str, declared: Parameter
    ) -> None:
        """Notes a producer whose return annotation does not fit what the consumer wants."""
        if wanted not in self.nodes or declared.annotation is Parameter("").annotation:
            return
        made = produced(self.nodes[wanted], self.nodes)
        if not fits(made, declared.annotation):
            source = self.nodes[wanted].ingredient.place
            where = f" ({source})" if source else ""
            text = (
                f"{node.name} wants '{parameter}' to be {type_name(declared.annotation)}, "
                f"but {wanted}{where} is {type_name(made)}. {class_here(made)}"
            )
            self.problems.append(Problem(text.rstrip(), node.ingredient.place))

    def node(self, name: str) -> IngredientNode:
        """The ingredient with its settings: followed by like(), typed, filled; each once."""
        if name in self.resolved:
            return self.resolved[name]
        ingredient = self.names.known[name]
        self.resolved[name] = IngredientNode(ingredient, MISSING)  # like() of itself stops here
        value, place = ingredient.value, ingredient.place
        base: dict[str, Any] = {}
        own: list[Entries] = []
        if isinstance(value, Like):
            model = self.like(name, value, place)
            if model is None:
                return self.resolved[name]
            base = dict(model.settings)
            if value.of_other_rows:
                base |= {"path": MISSING} if "path" in base else {}
                value = replace(value, settings={"shuffle": False} if "shuffle" in base else {})
            own = self.own_settings(name, value, model, place)
            if value.name in self.changed:
                self.changed.add(name)
            value = model.value
        value, layers, changed = self.typed_value(name, value, [*own, *self.layers_of(name)])
        if changed or name in self.names.swaps:
            self.changed.add(name)
        node = self.resolved[name] = IngredientNode(ingredient, value)
        if isinstance(value, BuiltFrom):
            node.wiring = self.built_from(name, value)
        else:
            node.wiring = wire(name, value, self.names.defined)
        self.problems += [Problem(text, place) for text in node.wiring.problems]
        defaults = {} if changed else base
        parameters = node.wiring.settings = [
            replace(p, default=defaults.get(p.name, p.default)) for p in node.wiring.settings
        ]
        self.refuse_dependencies(node, layers)
        self.settings.code = place
        self.settings.refuse_unknown([p.name for p in parameters], layers, name)
        where = layers[-1].place if layers else place
        for p in parameters:
            said = [layer.entries[p.name] for layer in layers if p.name in layer.entries]
            node.settings[p.name] = self.settings.resolve(p, said, f"{name}.{p.name}")
        for p in parameters:
            if node.settings[p.name] is MISSING:
                self.settings.required(f"{name}.{p.name}", parameters, p.name, where)
        config = as_config(value)
        # A script is executed again where its run is loaded, and makes what it made; else only
        # what the file says is there.
        again = self.names.table.source or config is None or isinstance(config, type)
        for p in parameters if again else settings_of(type(config)):
            found = node.settings.get(p.name, MISSING)
            if (text := _lost(found, p, f"{name}.{p.name}", self.settings.names)) is not None:
                self.problems.append(Problem(text, place))
        if config is None:
            return node
        node.kind = config if isinstance(config, type) else type(config)
        node.type_name = type_word(node.kind.owner)
        if not any(found is MISSING or found is INVALID for found in node.settings.values()):
            try:
                node.config = node.kind(**node.settings)
            except (ValueError, TypeError, UserError) as error:
                for each in error.errors if isinstance(error, SeveralError) else (error,):
                    text = str(each)
                    named = text.startswith(f"{name}.")
                    self.problems.append(Problem(text if named else f"{name}: {text}", where))
        return node

    def like(self, name: str, value: Like, place: Place | None) -> IngredientNode | None:
        if value.name not in self.names.known or value.name in self.names.off:
            guess = suggest(value.name, self.names.known)
            text = f"{name} is like '{value.name}', which is no ingredient. {guess}"
            if value.name in self.names.off:
                text = f"{name} is like '{value.name}', which is switched off: {name}=null too."
            self.problems.append(Problem(text.strip(), place))
            return None
        model = self.node(value.name)
        if model.value is MISSING:
            text = f"{name} is like '{value.name}', which follows it in a circle or is not known."
            self.problems.append(Problem(text, place))
            return None
        return model

    def own_settings(
        self, name: str, value: Like, model: IngredientNode, place: Place | None
    ) -> list[Entries]:
        """What like(...) sets; of a model that a layer made another type, only what that has."""
        items = dict(value.settings)
        if value.name in self.changed:
            known = _setting_names(name, model.value)
            for key in [key for key in items if key not in known]:
                where = f" ({place})" if place else ""
                self.notes.append(
                    f"{name}.{key}={items.pop(key)}{where} is discarded: {name} is like "
                    f"{value.name}, which is of another type now and has no '{key}'."
                )
        values = {key: Value(item, place) for key, item in items.items()}
        return [Entries(values, place or Place(name))] if values else []

    def layers_of(self, name: str) -> list[Entries]:
        """What files and the command line say of the ingredient, the weakest first."""
        found: list[Entries] = []
        swapped = self.names.swaps.get(name)
        from_files = [layer.entries[name] for layer in self.names.layers if name in layer.entries]
        if swapped is not None and from_files and str(swapped[1]).startswith(typed_place()):
            set_there = (leaf for node in from_files for leaf in leaves(node, name))
            dropped = [f"{path} ({place})" for path, place in set_there]
            self.notes.append(f"{name}={swapped[0]} ({swapped[1]}) discards {', '.join(dropped)}.")
            from_files = []
        typed = [self.names.typed.entries[name]] if name in self.names.typed.entries else []
        for node in [*from_files, *typed]:
            if isinstance(node, Entries):
                found.append(node)
            elif not is_null(node):
                self.refuse_word(name, node)
        return found

    def refuse_word(self, name: str, node: Written) -> None:
        if isinstance(node, Scalar) and node.text.startswith("@"):
            text = (
                f"{name}: the import path '{node.text}' is not read from a file. "
                f"{worded('Type it on the command line', 'Give it in the overrides')}, or write it "
                f"in the recipe: {name}={node.text}"
            )
        else:
            word = node.text if isinstance(node, Scalar) else "..."
            text = (
                f"{name} is an ingredient: wanted its settings, found {shown(node)}. "
                f"Another one is chosen with {name}.type={word}."
            )
        self.problems.append(Problem(text, node.place))

    def typed_value(
        self, name: str, value: Any, layers: list[Entries]
    ) -> tuple[Any, list[Entries], bool]:
        """The value after every layer's ``type``, the layers that count, and whether it changed."""
        kept: list[Entries] = []
        changed = False
        if isinstance(value, BuiltFrom) or "type" in _setting_names(name, value):
            return value, layers, False
        for layer in layers:
            if "type" not in layer.entries:
                kept.append(layer)
                continue
            entry = self.entry(name, value, layer.entries["type"])
            if entry is not None and not _same(entry, value):
                kinds = as_config(value), as_config(entry)
                kept = self.settings.retyped(kinds, kept, name, layer)
                value, changed = entry, True
            kept.append(without_type(layer))
        return value, kept, changed

    def entry(self, name: str, value: Any, node: Written) -> Any:
        """The registered object that ``type`` names, or None with the problem noted."""
        filed = find_name(_owner(value))
        registry = for_ingredient(name) or (filed[0] if filed else None)
        word = node.text if isinstance(node, Scalar) else str(getattr(node, "value", shown(node)))
        if word == type_word(_owner(value)):
            return value
        try:
            if word.startswith("@"):
                found = self.settings.names.find(word, node.place)
                if isinstance(found, type) and as_config(found) is not None:
                    return found
                raise UnknownCodeError(f"'{word}' is no component; wanted a class with a Config.")
            if registry is not None:
                return registry.get(word)
            text = f"nothing is registered that could be '{name}'; remove the type."
        except UserError as error:
            text = str(error)
            if self.settings.names.is_closed(node.place):
                self.settings.unknown.append((name, word))
        self.problems.append(Problem(f"{name}.type: {text}", node.place))
        return None

    def built_from(self, name: str, value: BuiltFrom) -> Wiring:
        """The wiring of an ingredient that another ingredient's Config builds."""
        source = self.node(value.name)
        wiring = Wiring()
        wiring.dependencies[value.name] = (value.name, Parameter(value.name))
        config = as_config(source.value)
        if config is None and callable(source.value):
            config = as_config(hints(source.value).get("return"))
        if config is None and source.value is not MISSING:
            wiring.problems.append(
                f"{name} is built from {value.name}, whose type is not known: annotate what "
                f"{value.name} returns with a component's Config, or define {name}."
            )
            return wiring
        if config is not None:
            renamed = source.value.names if isinstance(source.value, Given) else {}
            add_dependencies(wiring, dependencies_of(config), renamed, self.names.defined)
        return wiring

    def refuse_dependencies(self, node: IngredientNode, layers: list[Entries]) -> None:
        """Notes settings under the name of a dependency: they belong to that ingredient."""
        for index, layer in enumerate(layers):
            given = [key for key in layer.entries if key in node.wiring.dependencies]
            for key in given:
                text = (
                    f"{node.name}.{key} is the ingredient '{key}', no setting of {node.name}; "
                    f"its settings are written {key}.name=value."
                )
                self.problems.append(Problem(text, layer.place_of(key)))
            if given:
                rest = {key: item for key, item in layer.entries.items() if key not in given}
                layers[index] = Entries(rest, layer.place, key_places=layer.key_places)

    def tree(self) -> dict[str, Any]:
        """The resolved settings of all reached ingredients as plain data, ``type`` first."""
        found: dict[str, Any] = {}
        for name in self.order:
            node = self.nodes[name]
            head = {"type": node.type_name} if node.type_name else {}
            rest = {
                k: plain(v)
                for k, v in node.settings.items()
                if v is not MISSING and v is not INVALID
            }
            if head or rest:
                found[name] = {**head, **rest}
        return {**found, **dict.fromkeys(sorted(self.names.off))}

    def unreached(self) -> None:
        """Settings for names that no ingredient has are problems; for unreached ones, notes."""
        for layer in (*self.names.layers, self.names.typed):
            for name, node in layer.entries.items():
                if name in self.nodes or name in self.names.off:
                    continue
                place = layer.key_places.get(name, node.place)
                if name in self.names.always:
                    text = f"'{name}' is provided by the run and has no settings."
                    self.problems.append(Problem(text, place))
                elif name in self.names.known:
                    self.notes.append(
                        f"{name} is not used here; its settings ({place}) change nothing."
                    )
                else:
                    keys = node.entries if isinstance(node, Entries) else ()
                    guess = self.names.nearest(name, keys, self.dotted(self.order))
                    guess = setting_here(name) or guess
                    listed = "" if guess else f"Known: {', '.join(sorted(self.names.all()))}."
                    text = f"'{name}' is no ingredient of this recipe. {guess}{listed}".strip()
                    self.problems.append(Problem(text, place))

    def report_missing(self) -> None:
        """One problem for each name that is needed and that nobody defines."""
        for name, users in self.missing.items():
            needs = ", ".join(dict.fromkeys(users)) + (
                " needs" if len(set(users)) == 1 else " need"
            )
            by = f", and {needs} it" if users else ""
            own = [user for user in users if user in self.names.table.ingredients]
            place = self.nodes[own[0]].ingredient.place if own else None
            free = [key for key in self.names.table.ingredients if key not in self.nodes]
            guess = suggest(name, free)
            text = f"no '{name}' is specified{by}. {guess}Define {name} in the recipe."
            if name in self.names.off:
                text = f"'{name}' is switched off by {name}=null{by}. Leave that out."
            bound = self.names.table.objects.get(name)
            self.problems.append(Problem(bound) if bound else Problem(text, place))

    def note_unused(self) -> None:
        """Notes Configs that the recipe binds, and neither mentions itself nor gives to anybody."""
        table = self.names.table
        free = {*self.names.known, *self.unfilled} - set(table.ingredients)
        for name, ingredient in table.ingredients.items():
            if name in self.nodes or name in self.names.off or name in table.mentioned:
                continue
            if isinstance(ingredient.value, Config | Given):
                where = f" ({ingredient.place})" if ingredient.place else ""
                text = f"{name}{where} is taken by nothing here. {suggest(name, free)}"
                self.notes.append(text.strip())

    @property
    def unfilled(self) -> set[str]:
        """Names that something here would take, and nobody defines."""
        return {name for node in self.nodes.values() for name in node.wiring.unfilled}

    def finished(self, targets: Sequence[str]) -> Plan:
        self.unreached()
        self.report_missing()
        for name, text in self.names.table.objects.items():
            if name in self.nodes or name in self.unfilled:
                self.problems.append(Problem(text))  # the default would be used, and not said
        if "trainer" in targets:
            self.note_unused()
        swaps = {name: path for name, (path, _) in self.names.swaps.items() if name in self.nodes}
        problems = [*self.names.problems, *self.problems]
        notes = [*self.names.notes, *self.notes]
        return Plan(
            table=self.names.table,
            targets=tuple(targets),
            order=tuple(self.order),
            settings=self.tree(),
            notes=list(dict.fromkeys(notes)),
            nodes={name: self.nodes[name] for name in self.order},
            problems=list(dict.fromkeys(problems)),
            missing=list(self.missing),
            swaps=swaps,
            meant=dict(self.names.meant),
            given=frozenset(
                name.removeprefix(".")
                for layer in (*self.names.layers, self.names.typed)
                for name, _ in leaves(layer, "")
            ),
            unknown=self.settings.unknown,
        )


def _dotted(tree: Any, name: str) -> list[str]:
    if isinstance(tree, dict) and tree:
        return [found for key, item in tree.items() for found in _dotted(item, f"{name}.{key}")]
    return [] if name.endswith(".type") else [name]


def _setting_names(name: str, value: Any) -> list[str]:
    return (
        [p.name for p in wire(name, value, lambda _: True).settings] if value is not MISSING else []
    )


def _owner(value: Any) -> Any:
    """The component that an ingredient's value stands for, else the value."""
    config = as_config(value)
    return getattr(config, "owner", None) if config is not None else value


def _same(entry: Any, value: Any) -> bool:
    first, second = as_config(entry), as_config(value)
    if first is None or second is None:
        return entry is value
    return getattr(first, "owner", first) is getattr(second, "owner", second)


def _lost(value: Any, parameter: Parameter, name: str, names: CodeNames) -> str | None:
    """Why a value of a person's own would be another in the run that is loaded.

    What has no part of a person's own is not looked at: the library's own reads back. The text
    says what is wrong and what to do; it is None where nothing is.
    """
    if value is MISSING or value is INVALID or not _is_own(value):
        return None
    written = plain(value)
    top = yaml_nodes(dump_yaml({"it": written}), source=name)
    assert isinstance(top, Entries)
    reader = Settings(names)
    back = reader.resolve(parameter, [top.entries["it"]], name)
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
