"""The plan: what will be built, from what, with which settings; every problem is found before anything runs."""

import importlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from weft.config import registries
from weft.config.component import Given
from weft.config.graph import Node, Wiring, add_dependencies, produced, wire
from weft.config.ingredient import (
    MISSING, BuiltFrom, Ingredient, Like, Parameter, Table,
    as_config, dependencies_of, is_ingredient,
)  # fmt: skip
from weft.config.kinds import fits, hints, type_name
from weft.config.nodes import Entries, Scalar, Value, is_null, merged, shown
from weft.config.nodes import Node as Written
from weft.config.registry import Registry
from weft.config.session import Session
from weft.config.tree import Settings, leaves, near, without_type
from weft.config.values import INVALID, plain
from weft.config.yaml_files import Word, parse_word
from weft.errors import Place, PlanError, Problem, UserError

__all__ = ["ALWAYS", "Plan", "draft_plan", "make_plan"]

ALWAYS = ("env", "xp", "entry_point")


@dataclass
class Plan:
    """What will be built, in which order, with which settings."""

    table: Table
    targets: tuple[str, ...]
    order: tuple[str, ...] = ()
    settings: dict[str, dict[str, Any]] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    nodes: dict[str, Node] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)
    swaps: dict[str, str] = field(default_factory=dict)

    @property
    def ingredients(self) -> dict[str, Ingredient]:
        """The reached ingredients by name."""
        return {name: node.ingredient for name, node in self.nodes.items()}

    def start(self, provided: Mapping[str, object] | None = None) -> Session:
        """Begins to build. ``provided`` stands for ingredients that exist already: env, xp, ..."""
        return Session(self.nodes, provided or {})


def make_plan(
    table: Table,
    *,
    defaults: Table,
    layers: Sequence[Entries] = (),
    words: Sequence[str] = (),
    targets: Sequence[str] = (),
    always: Iterable[str] = ALWAYS,
) -> Plan:
    """Plans what the targets reach.

    Args:
        table: The recipe's ingredients.
        defaults: The library's, for names the recipe does not define.
        layers: Settings from files, the first the weakest.
        words: ``name.setting=value`` of the command line, stronger than all files.
        targets: The ingredients an entry point asks for.
        always: Names that the run provides.

    Raises:
        PlanError: With every problem found.
    """
    plan = draft_plan(
        table, defaults=defaults, layers=layers, words=words, targets=targets, always=always
    )
    if plan.problems:
        raise PlanError(plan.problems)
    return plan


def draft_plan(
    table: Table,
    *,
    defaults: Table,
    layers: Sequence[Entries] = (),
    words: Sequence[str] = (),
    targets: Sequence[str] = (),
    always: Iterable[str] = ALWAYS,
) -> Plan:
    """As :func:`make_plan`, but keeps the problems in the plan: help shows incomplete recipes too."""
    planner = _Planner(table, defaults, layers, tuple(always))
    bare = planner.read_words(words)
    if bare:
        first = planner.again()
        first.walk(targets)
        planner.place_bare_words(bare, first.dotted_settings())
    planner.walk(targets)
    return planner.finished(targets)


class _Planner:
    """Walks from the targets to everything they need, and notes what is wrong on the way."""

    def __init__(
        self, table: Table, defaults: Table, layers: Sequence[Entries], always: tuple[str, ...]
    ) -> None:
        self.table, self.defaults, self.layers, self.always = table, defaults, layers, always
        self.known = {**defaults.ingredients, **table.ingredients}
        self.typed = Entries({}, Place("command line"))
        self.swaps: dict[str, tuple[str, Place]] = {}
        self.settings = Settings()
        self.problems: list[Problem] = self.settings.problems
        self.notes: list[str] = self.settings.notes
        self.nodes: dict[str, Node] = {}
        self.resolved: dict[str, Node] = {}
        self.order: list[str] = []
        self.missing: dict[str, list[str]] = {}
        self.off: set[str] = set()
        for name, path in table.swaps.items():
            self.swap(name, path, Place(table.name))

    def again(self) -> "_Planner":
        """A fresh planner with the same input, to look at what bare words could mean."""
        other = _Planner(self.table, self.defaults, self.layers, self.always)
        other.known, other.typed, other.swaps = dict(self.known), self.typed, dict(self.swaps)
        return other

    # What is known by name

    def defined(self, name: str) -> bool:
        """Whether somebody defines the ingredient or the run provides it."""
        if name in self.off:
            return False
        if name in self.always:
            return True
        found = self.known.get(name)
        if found is not None and isinstance(found.value, BuiltFrom):
            return self.defined(found.value.name)
        return found is not None

    def names(self) -> list[str]:
        """All names an ingredient can have here."""
        return [*self.known, *(name for name in self.always if name not in self.known)]

    # The command line

    def read_words(self, words: Sequence[str]) -> list[Word]:
        """Files the words under their ingredients; returns the bare ones."""
        bare: list[Word] = []
        for text in words:
            try:
                word = parse_word(text)
            except UserError as error:
                self.problems.append(Problem(str(error)))
                continue
            name = word.path[0]
            if (
                len(word.path) == 1
                and isinstance(word.node, Scalar)
                and word.node.text.startswith("@")
            ):
                self.swap(name, word.node.text, word.place)
            elif self.named(name):
                self.type_word(word.tree())
            else:
                bare.append(word)
        self.switch_off()
        return bare

    def named(self, name: str) -> bool:
        """Whether the name is one an ingredient has, or would have if it were defined."""
        return name in self.known or name in self.always or name in self.swaps

    def type_word(self, tree: Entries) -> None:
        """Adds a word to the command line's layer."""
        joined = merged(self.typed, tree)
        assert isinstance(joined, Entries)
        self.typed = joined

    def switch_off(self) -> None:
        """``valid_data=null``: the ingredient is as if nobody had defined it."""
        for layer in (*self.layers, self.typed):
            for name, node in layer.entries.items():
                if name in self.known:
                    (self.off.add if is_null(node) else self.off.discard)(name)

    def swap(self, name: str, path: str, place: Place) -> None:
        """``module=@my_package.models.deep``: the ingredient is what the import path names."""
        module_name, _, attribute = path.removeprefix("@").rpartition(".")
        try:
            value = getattr(importlib.import_module(module_name), attribute)
        except (ImportError, AttributeError, ValueError) as error:
            self.problems.append(Problem(f"{name}: '{path}' cannot be imported: {error}", place))
            return
        if not is_ingredient(value):
            wanted = "wanted a function, a class, a component or a Config"
            self.problems.append(
                Problem(f"{name}: '{path}' is a {type(value).__name__}; {wanted}.", place)
            )
            return
        self.swaps[name] = (path, place)
        self.known[name] = Ingredient(name, value, place)

    def place_bare_words(self, bare: Sequence[Word], dotted: Sequence[str]) -> None:
        """Finds the one setting that each bare word means."""
        for word in bare:
            ends = [name for name in dotted if name.endswith(f".{word.dotted}")]
            if len(ends) == 1:
                self.notes.append(f"{word.place.source.partition(': ')[2]} sets {ends[0]}")
                self.type_word(word.tree(tuple(ends[0].split("."))))
            elif ends:
                listed = ", ".join(ends)
                text = (
                    f"'{word.dotted}' can mean more than one setting: {listed}. Write one of them."
                )
                self.problems.append(Problem(text, word.place))
            else:
                self.unknown_word(word, dotted)

    def unknown_word(self, word: Word, dotted: Sequence[str]) -> None:
        """Notes a word that names nothing, with the nearest name."""
        lasts = {name.rpartition(".")[2]: name for name in dotted}
        if len(word.path) == 1:
            guess = near(word.dotted, [*lasts, *self.names()])
            text = f"no setting is named '{word.dotted}'. {guess}"
        else:
            guess = near(word.path[0], self.names()) or near(word.dotted, dotted)
            text = f"'{word.path[0]}' is no ingredient of this recipe. {guess}"
            text += f"Known: {', '.join(sorted(self.names()))}." if not guess else ""
        self.problems.append(Problem(text.strip(), word.place))

    def dotted_settings(self) -> list[str]:
        """Every setting of the plan by its dotted name."""
        return [name for key, tree in self.tree().items() for name in _dotted(tree, key)]

    # The walk

    def walk(self, targets: Sequence[str]) -> None:
        """Plans the targets and everything they need."""
        for target in targets:
            if self.defined(target):
                self.visit(target, ())
            else:
                self.missing.setdefault(target, [])

    def visit(self, name: str, path: tuple[str, ...]) -> None:
        """Plans one ingredient after those it needs."""
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            place = self.nodes[name].ingredient.place
            self.problems.append(
                Problem(f"ingredients need each other in a circle: {circle}.", place)
            )
            return
        if name in self.nodes or name not in self.known:
            return
        node = self.nodes[name] = self.node(name)
        for parameter, (wanted, declared) in node.wiring.dependencies.items():
            if self.defined(wanted):
                self.visit(wanted, (*path, name))
                self.check_fit(node, parameter, wanted, declared)
            else:
                self.missing.setdefault(wanted, []).append(name)
        self.order.append(name)

    def check_fit(self, node: Node, parameter: str, wanted: str, declared: Parameter) -> None:
        """Notes a producer whose return annotation cannot stand where the consumer wants another."""
        if wanted not in self.nodes or declared.annotation is Parameter("").annotation:
            return
        made = self.made_type(wanted)
        if not fits(made, declared.annotation):
            source = self.nodes[wanted].ingredient.place
            where = f" ({source})" if source else ""
            text = (
                f"{node.name} wants '{parameter}' to be {type_name(declared.annotation)}, "
                f"but {wanted}{where} is {type_name(made)}."
            )
            self.problems.append(Problem(text, node.ingredient.place))

    def made_type(self, name: str) -> Any:
        """What a consumer of the ingredient receives."""
        value = self.nodes[name].value
        if isinstance(value, BuiltFrom):
            model = self.nodes.get(value.name)
            return produced("module", model.value) if model is not None and model.is_config else Any
        return produced(name, value)

    # One ingredient

    def node(self, name: str) -> Node:
        """The ingredient with its settings resolved; each is resolved once."""
        if name not in self.resolved:
            ingredient = self.known[name]
            self.resolved[name] = Node(
                ingredient, MISSING
            )  # a like() that follows itself stops here
            self.resolved[name] = self.resolve(name, ingredient)
        return self.resolved[name]

    def resolve(self, name: str, ingredient: Ingredient) -> Node:
        """Follows like(), then the layers' type, then their settings."""
        value, base, own = ingredient.value, {}, list[Entries]()
        if isinstance(value, Like):
            model = self.like(name, value, ingredient.place)
            if model is None:
                return Node(ingredient, MISSING)
            base = model.settings
            items = {key: Value(item, ingredient.place) for key, item in value.settings.items()}
            own = [Entries(items, ingredient.place or Place(name))] if items else []
            value = model.value
        value, layers, changed = self.typed_value(name, value, [*own, *self.layers_of(name)])
        node = Node(ingredient, value)
        if isinstance(value, BuiltFrom):
            node.wiring = self.built_from(name, value)
        else:
            node.wiring = wire(name, value, self.defined)
        self.problems += [Problem(text, ingredient.place) for text in node.wiring.problems]
        self.fill(node, {} if changed else base, layers)
        return node

    def like(self, name: str, value: Like, place: Place | None) -> Node | None:
        """The ingredient that a like() follows."""
        if value.name not in self.known or value.name in self.off:
            text = f"{name} is like '{value.name}', which is no ingredient. {near(value.name, self.known)}"
            self.problems.append(Problem(text.strip(), place))
            return None
        model = self.node(value.name)
        if model.value is MISSING:
            text = f"{name} is like '{value.name}', which follows it in a circle or is not known."
            self.problems.append(Problem(text, place))
            return None
        return model

    def layers_of(self, name: str) -> list[Entries]:
        """What files and the command line say of the ingredient, the weakest first."""
        found: list[Entries] = []
        swapped = self.swaps.get(name)
        from_files = [layer.entries[name] for layer in self.layers if name in layer.entries]
        if swapped is not None and from_files and str(swapped[1]).startswith("command line"):
            dropped = [text for node in from_files for text in _listed(node, name)]
            self.notes.append(f"{name}={swapped[0]} ({swapped[1]}) discards {', '.join(dropped)}.")
            from_files = []
        typed = [self.typed.entries[name]] if name in self.typed.entries else []
        for node in [*from_files, *typed]:
            if isinstance(node, Entries):
                found.append(node)
            elif not is_null(node):
                self.refuse_word(name, node)
        return found

    def refuse_word(self, name: str, node: Written) -> None:
        """Notes a plain value where settings of an ingredient belong."""
        if isinstance(node, Scalar) and node.text.startswith("@"):
            text = (
                f"{name}: the import path '{node.text}' is not read from a file. "
                f"Type it on the command line, or write it in the recipe: {name}={node.text}"
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
        """The value after every layer's ``type``, the layers that still count, and whether it changed."""
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
                dropped = [text for earlier in kept for text in _listed(earlier, name)]
                if dropped:
                    word = shown(layer.entries["type"]).strip("'")
                    place = layer.entries["type"].place
                    self.notes.append(
                        f"{name}.type={word} ({place}) discards {', '.join(dropped)}."
                    )
                value, kept, changed = entry, [], True
            kept.append(without_type(layer))
        return value, kept, changed

    def entry(self, name: str, value: Any, node: Written) -> Any:
        """The registered object that ``type`` names, or None with the problem noted."""
        registry = _registry(name, value)
        word = node.text if isinstance(node, Scalar) else str(getattr(node, "value", shown(node)))
        if registry is None:
            text = f"{name}.type: nothing is registered that could be '{name}'; remove the type."
            self.problems.append(Problem(text, node.place))
            return None
        if word.startswith("@"):
            text = (
                f"{name}.type: wanted a registered {registry.concept}. Import paths: {name}={word}"
            )
            self.problems.append(Problem(text, node.place))
            return None
        try:
            return registry.get(word)
        except UserError as error:
            self.problems.append(Problem(f"{name}.type: {error}", node.place))
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
            add_dependencies(wiring, dependencies_of(config), renamed, self.defined)
        return wiring

    def fill(self, node: Node, base: Mapping[str, Any], layers: list[Entries]) -> None:
        """Resolves the settings of one ingredient."""
        parameters = [
            Parameter(p.name, p.annotation, base.get(p.name, p.default), p.doc, p.in_key)
            for p in node.wiring.settings
        ]
        node.wiring.settings = parameters
        self.refuse_dependencies(node, layers)
        found = self.settings.fields(parameters, layers, node.name)
        place = layers[-1].place if layers else node.ingredient.place
        for name, value in found.items():
            if value is MISSING:
                self.settings.required(f"{node.name}.{name}", parameters, name, place)
        node.settings = found
        config = as_config(node.value)
        if config is None:
            return
        node.kind = config if isinstance(config, type) else type(config)
        filed = registries.find_name(node.kind.owner)
        node.type_name = filed[1] if filed else None
        if not any(value is MISSING or value is INVALID for value in found.values()):
            node.config = self.config(node, found, place)

    def config(self, node: Node, found: Mapping[str, Any], place: Place | None) -> Any:
        """The Config with all its settings, which may refuse them."""
        try:
            return node.kind(**found)
        except (ValueError, TypeError, UserError) as error:
            text = str(error) if str(error).startswith(f"{node.name}.") else f"{node.name}: {error}"
            self.problems.append(Problem(text, place))
            return None

    def refuse_dependencies(self, node: Node, layers: list[Entries]) -> None:
        """Notes settings under the name of a dependency: they belong to that ingredient."""
        for index, layer in enumerate(layers):
            given = [key for key in layer.entries if key in node.wiring.dependencies]
            for key in given:
                text = (
                    f"{node.name}.{key} is the ingredient '{key}', no setting of {node.name}; "
                    f"its settings are written {key}.…"
                )
                self.problems.append(Problem(text, layer.place_of(key)))
            if given:
                rest = {key: item for key, item in layer.entries.items() if key not in given}
                layers[index] = Entries(rest, layer.place, key_places=layer.key_places)

    # The result

    def tree(self) -> dict[str, dict[str, Any]]:
        """The resolved settings of all reached ingredients as plain data, ``type`` first."""
        found: dict[str, dict[str, Any]] = {}
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
        return found

    def unreached(self) -> None:
        """Settings for names that no ingredient has are problems; for unreached ones, notes."""
        for layer in (*self.layers, self.typed):
            for name, node in layer.entries.items():
                if name in self.nodes or name in self.off:
                    continue
                place = layer.key_places.get(name, node.place)
                if name in self.always:
                    text = f"'{name}' is provided by the run and has no settings."
                    self.problems.append(Problem(text, place))
                elif name in self.known:
                    self.notes.append(
                        f"{name} is not used here; its settings ({place}) change nothing."
                    )
                else:
                    guess = near(name, self.names())
                    listed = "" if guess else f"Known: {', '.join(sorted(self.names()))}."
                    text = f"'{name}' is no ingredient of this recipe. {guess}{listed}".strip()
                    self.problems.append(Problem(text, place))

    def report_missing(self) -> None:
        """One problem for each name that is needed and that nobody defines."""
        for name, users in self.missing.items():
            by = f", and {', '.join(dict.fromkeys(users))} needs it" if users else ""
            place = self.nodes[users[0]].ingredient.place if users else None
            guess = near(name, [key for key in self.table.ingredients if key not in self.nodes])
            text = f"no '{name}' is specified{by}. {guess}Define {name} in the recipe."
            self.problems.append(Problem(text, place))

    def finished(self, targets: Sequence[str]) -> Plan:
        """The plan as found."""
        self.unreached()
        self.report_missing()
        swaps = {name: path for name, (path, _) in self.swaps.items() if name in self.nodes}
        return Plan(
            self.table, tuple(targets), tuple(self.order), self.tree(), list(dict.fromkeys(self.notes)),
            {name: self.nodes[name] for name in self.order}, list(dict.fromkeys(self.problems)),
            list(self.missing), swaps,
        )  # fmt: skip


def _listed(node: Written, name: str) -> list[str]:
    return [f"{path} ({place})" for path, place in leaves(node, name)]


def _dotted(tree: Any, name: str) -> list[str]:
    if isinstance(tree, dict) and tree:
        return [found for key, item in tree.items() for found in _dotted(item, f"{name}.{key}")]
    return [] if name.endswith(".type") else [name]


def _setting_names(name: str, value: Any) -> list[str]:
    return (
        [p.name for p in wire(name, value, lambda _: True).settings] if value is not MISSING else []
    )


def _registry(name: str, value: Any) -> Registry[Any] | None:
    config = as_config(value)
    owner = getattr(config, "owner", None) if config is not None else value
    filed = registries.find_name(owner)
    return registries.for_ingredient(name) or (filed[0] if filed else None)


def _same(entry: Any, value: Any) -> bool:
    first, second = as_config(entry), as_config(value)
    if first is None or second is None:
        return entry is value
    return getattr(first, "owner", first) is getattr(second, "owner", second)
