"""The plan: what will be built, from what, with which settings; every problem beforehand."""

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from textmill.config.code_names import CodeNames, UnknownCodeError, type_word
from textmill.config.component import Given
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
from textmill.config.planning.overrides import Names, outermost
from textmill.config.planning.read_back import why_lost
from textmill.config.planning.session import Session
from textmill.config.planning.unused import Unused
from textmill.config.planning.wiring import (
    IngredientNode,
    Wiring,
    add_dependencies,
    dotted_settings,
    is_same,
    owner_of,
    produced,
    setting_names,
    wire,
)
from textmill.config.registry import find_name, for_ingredient, suggest
from textmill.config.values.annotations import fits, hints, type_name
from textmill.config.values.raw_values import Entries, Scalar, Value, is_null, merged, shown
from textmill.config.values.raw_values import Node as Written
from textmill.config.values.typed_values import INVALID, plain
from textmill.config.values.yaml_files import Word, typed_place
from textmill.errors import Place, PlanError, Problem, SeveralError, UserError, worded

ALWAYS = ("env", "xp", "entry_point")


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
    tasks: dict[str, "Plan"] = field(default_factory=dict)
    """Those of the tasks that a run trains together, by name, whose settings are among these."""

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
    also: Sequence[str] = (),
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
        also: Those that it takes, too, where the recipe has them.
        always: Names that the run provides.
        draft: The plan keeps its problems: help shows incomplete recipes too.
        closed: The files among those of the layers for which nothing is imported.

    Raises:
        PlanError: With every problem found; not of a draft.
    """
    names = Names(table, defaults, layers, tuple(always))
    bare = names.read_words(words)
    if "trainer" in targets:  # a run is evaluated on data that its trainer may not take
        also = EVALUATION_DATA
    targets = [*targets, *filter(names.defined, also)]
    planner = _Planner(names, closed)
    for target in targets:
        if names.defined(target):
            planner.visit(target, ())
        else:
            planner.missing.setdefault(target, [])
    known = [name for name in STANDARD if name in names.known and names.defined(name)]
    whole = partial(  # a bare word may mean what these targets do not reach
        make_plan,
        table,
        defaults=defaults,
        layers=layers,
        words=[word for word in words if word not in {each.text for each in bare}],
        targets=[*targets, *known],
        always=names.always,
        draft=True,
        closed=closed,
    )
    waiting = list(planner.resolved.values())
    while waiting or bare:
        for node in waiting:
            reader = planner.reader_of(node)
            values = reader.fields(node.wiring.settings, node.layers, node.name)
            planner.complete(node, values)
        waiting, bare = planner.place(bare, whole), []
    plan = planner.finished(targets)
    if plan.problems and not draft:
        raise PlanError(plan.problems)
    return plan


class _Planner:
    """Walks from the targets to everything they need, and notes what is wrong on the way.

    First each ingredient gets its type and what it is built from, then its settings are read.
    """

    def __init__(self, names: Names, closed: Collection[str]) -> None:
        self.names = names
        self.code = CodeNames(names.table.module, closed)
        self.resolved: dict[str, IngredientNode] = {}  # what another is like comes before it
        self.changed: set[str] = set()  # ingredients that are of another type than the recipe says
        self.nodes: dict[str, IngredientNode] = {}
        self.order: list[str] = []
        self.missing: dict[str, list[str]] = {}
        self.problems: list[Problem] = []
        self.notes: list[str] = []

    def visit(self, name: str, path: tuple[str, ...]) -> None:
        """Plans an ingredient and what it is built from; ``path`` are those that led to it."""
        if name in path:
            circle = " -> ".join([*path[path.index(name) :], name])
            place = self.nodes[name].ingredient.place
            text = f"ingredients need each other in a circle: {circle}."
            self.problems.append(Problem(text, place))
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
                f"but {wanted}{where} is {type_name(made)}."
            )
            self.problems.append(Problem(text, node.ingredient.place))

    def node(self, name: str) -> IngredientNode:
        """The ingredient after ``like`` and every layer's ``type``, and what it is built from."""
        if name in self.resolved:
            return self.resolved[name]
        ingredient = self.names.known[name]
        value, place = ingredient.value, ingredient.place
        node = self.resolved[name] = IngredientNode(ingredient, MISSING)  # stops like() of itself
        node.wires = self.fresh_reader(node)
        if isinstance(value, Like):
            node.like = self.like(node, value)
            if node.like is None:
                return self.resolved.setdefault(name, self.resolved.pop(name))  # after its like
            if value.of_other_rows and any(p.name == "shuffle" for p in node.like.wiring.settings):
                value = replace(value, settings={"shuffle": False})
            node.layers = self.own_settings(node, value, node.like)
            if value.name in self.changed:
                self.changed.add(name)
            value = node.like.value
        node.layers += self.layers_of(node)
        if self.take_type(node, value):
            node.like = None  # what the other has as settings are not its own any more
            self.changed.add(name)
        elif name in self.names.swaps:
            self.changed.add(name)
        if isinstance(node.value, BuiltFrom):
            node.wiring = self.built_from(name, node.value)
        else:
            node.wiring = wire(name, node.value, self.names.defined)
        node.wires.problems += [Problem(text, place) for text in node.wiring.problems]
        self.refuse_dependencies(node)
        return self.resolved.setdefault(name, self.resolved.pop(name))

    def fresh_reader(self, node: IngredientNode) -> Settings:
        reader = Settings(self.code)
        reader.code = node.ingredient.place
        return reader

    def reader_of(self, node: IngredientNode) -> Settings:
        """What reads an ingredient's settings; their defaults are those of what it is like."""
        node.reader = self.fresh_reader(node)
        if node.like is not None:
            value, usual = node.ingredient.value, dict(node.like.settings)
            if value.of_other_rows and "path" in usual:
                usual["path"] = MISSING
            node.wiring.settings = [
                replace(p, default=usual.get(p.name, p.default)) for p in node.wiring.settings
            ]
        return node.reader

    def complete(self, node: IngredientNode, values: dict[str, Any]) -> None:
        """Takes the settings, and makes the Config of them if there is one."""
        node.settings, name, place = values, node.name, node.ingredient.place
        config = as_config(node.value)
        # A script is executed again where its run is loaded, and makes what it made; else only
        # what the file says is there.
        again = self.names.table.source or config is None or isinstance(config, type)
        for p in node.wiring.settings if again else settings_of(type(config)):
            lost = why_lost(values.get(p.name, MISSING), p, name, self.code)
            if lost is not None:
                node.reader.problem(lost, place)
        if config is None:
            return
        node.kind = config if isinstance(config, type) else type(config)
        node.type_name = type_word(node.kind.owner)
        if any(value is MISSING or value is INVALID for value in values.values()):
            return
        try:
            node.config = node.kind(**values)
        except (ValueError, TypeError, UserError) as error:
            for each in error.errors if isinstance(error, SeveralError) else (error,):
                text = str(each) if str(each).startswith(f"{name}.") else f"{name}: {each}"
                node.reader.problem(text, node.layers[-1].place if node.layers else place)

    def place(self, bare: Sequence[Word], whole: Callable[[], Plan]) -> list[IngredientNode]:
        """Gives bare words to the settings they mean; the ingredients to be read again."""
        near, further = dotted_settings(self.nodes[name] for name in self.order), list[str]()
        if not all(outermost(near, word) for word in bare):
            further = dotted_settings(whole().nodes.values())
        again: dict[str, IngredientNode] = {}
        for name, entries in self.names.place_bare_words(bare, near, further):
            if name in self.resolved:
                node = again[name] = self.resolved[name]
                last = node.layers[-1:]
                is_typed = bool(last) and str(last[0].place).startswith(typed_place())
                joined = merged(node.layers.pop() if is_typed else None, entries)
                assert isinstance(joined, Entries)
                node.layers.append(joined)
        return list(again.values())  # none is like another: the word would mean both

    def like(self, node: IngredientNode, value: Like) -> IngredientNode | None:
        """What the ingredient is like; None with the problem noted if there is nothing."""
        name = node.name
        if value.name in self.names.off:
            text = f"is like '{value.name}', which is switched off: {name}=null too."
        elif value.name not in self.names.known:
            guess = suggest(value.name, self.names.known)
            text = f"is like '{value.name}', which is no ingredient. {guess}".strip()
        elif (model := self.node(value.name)).value is MISSING:
            text = f"is like '{value.name}', which follows it in a circle or is not known."
        else:
            return model
        node.wires.problem(f"{name} {text}", node.ingredient.place)
        return None

    def own_settings(
        self, node: IngredientNode, value: Like, model: IngredientNode
    ) -> list[Entries]:
        """What like(...) sets; of a model that a layer made another type, only what that has."""
        items, name, place = dict(value.settings), node.name, node.ingredient.place
        if value.name in self.changed:
            known = setting_names(name, model.value)
            for key in [key for key in items if key not in known]:
                where = f" ({place})" if place else ""
                node.wires.notes.append(
                    f"{name}.{key}={items.pop(key)}{where} is discarded: {name} is like "
                    f"{value.name}, which is of another type now and has no '{key}'."
                )
        values = {key: Value(item, place) for key, item in items.items()}
        return [Entries(values, place or Place(name))] if values else []

    def layers_of(self, node: IngredientNode) -> list[Entries]:
        """What files and the command line say of the ingredient, the weakest first."""
        layers: list[Entries] = []
        name, swapped = node.name, self.names.swaps.get(node.name)
        from_files = [layer.entries[name] for layer in self.names.layers if name in layer.entries]
        if swapped is not None and from_files and str(swapped[1]).startswith(typed_place()):
            set_there = (leaf for each in from_files for leaf in leaves(each, name))
            dropped = [f"{path} ({place})" for path, place in set_there]
            text = f"{name}={swapped[0]} ({swapped[1]}) discards {', '.join(dropped)}."
            node.wires.notes.append(text)
            from_files = []
        typed = [self.names.typed.entries[name]] if name in self.names.typed.entries else []
        for each in [*from_files, *typed]:
            if isinstance(each, Entries):
                layers.append(each)
            elif not is_null(each):
                node.wires.problem(_not_settings(name, each), each.place)
        return layers

    def take_type(self, node: IngredientNode, value: Any) -> bool:
        """Gives the node the value after every layer's ``type``; whether that is another type."""
        node.value = value
        if isinstance(value, BuiltFrom) or "type" in setting_names(node.name, value):
            return False
        kept: list[Entries] = []
        for layer in node.layers:
            if "type" not in layer.entries:
                kept.append(layer)
                continue
            entry = self.entry(node, layer.entries["type"])
            if entry is not None and not is_same(entry, node.value):
                kinds = as_config(node.value), as_config(entry)
                kept = node.wires.retyped(kinds, kept, node.name, layer)
                node.value = entry
            kept.append(without_type(layer))
        node.layers = kept
        return node.value is not value

    def entry(self, node: IngredientNode, written: Written) -> Any:
        """The registered object that ``type`` names, or None with the problem noted."""
        name, value, place = node.name, node.value, written.place
        filed = find_name(owner_of(value))
        registry = for_ingredient(name) or (filed[0] if filed else None)
        word = str(getattr(written, "value", shown(written)))
        word = written.text if isinstance(written, Scalar) else word
        if word == type_word(owner_of(value)):
            return value
        try:
            if word.startswith("@"):
                found = self.code.find(word, place)
                if isinstance(found, type) and as_config(found) is not None:
                    return found
                raise UnknownCodeError(f"'{word}' is no component; wanted a class with a Config.")
            if registry is not None:
                return registry.get(word)
            text = f"nothing is registered that could be '{name}'; remove the type."
        except UserError as error:
            text = str(error)
            if self.code.is_closed(place):
                node.wires.unknown.append((name, word))
        node.wires.problem(f"{name}.type: {text}", place)
        return None

    def built_from(self, name: str, value: BuiltFrom) -> Wiring:
        """The wiring of an ingredient that another ingredient's Config builds."""
        source = self.node(value.name)
        wiring = Wiring()
        wiring.dependencies[value.name] = (value.name, Parameter(value.name))
        config = as_config(source.value)
        if config is None and callable(source.value):
            config = as_config(hints(source.value).get("return"))
        if config is not None:
            renamed = source.value.names if isinstance(source.value, Given) else {}
            add_dependencies(wiring, dependencies_of(config), renamed, self.names.defined)
        elif source.value is not MISSING:
            wiring.problems.append(
                f"{name} is built from {value.name}, whose type is not known: annotate what "
                f"{value.name} returns with a component's Config, or define {name}."
            )
        return wiring

    def refuse_dependencies(self, node: IngredientNode) -> None:
        """Notes settings under the name of a dependency: they belong to that ingredient."""
        for index, layer in enumerate(node.layers):
            given = [key for key in layer.entries if key in node.wiring.dependencies]
            for key in given:
                text = (
                    f"{node.name}.{key} is the ingredient '{key}', no setting of {node.name}; "
                    f"its settings are written {key}.name=value."
                )
                node.wires.problem(text, layer.place_of(key))
            if given:
                rest = {key: item for key, item in layer.entries.items() if key not in given}
                node.layers[index] = replace(layer, entries=rest)

    def tree(self) -> dict[str, Any]:
        """The resolved settings of all reached ingredients as plain data, ``type`` first."""
        found: dict[str, Any] = {}
        for name in self.order:
            node = self.nodes[name]
            head = {"type": node.type_name} if node.type_name else {}
            known = ((k, v) for k, v in node.settings.items() if v is not MISSING)
            rest = {k: plain(v) for k, v in known if v is not INVALID}
            if head or rest:
                found[name] = {**head, **rest}
        return {**found, **dict.fromkeys(sorted(self.names.off))}

    def finished(self, targets: Sequence[str]) -> Plan:
        said = Unused(self.names, self.nodes, {*self.resolved})
        self.problems += [*said.unknown(), *said.missing(self.missing)]
        self.notes += said.unreached()
        for name, text in self.names.table.objects.items():
            if name in self.nodes or name in said.unfilled:
                self.problems.append(Problem(text))  # the default would be used, and not said
        if "trainer" in targets:
            self.notes += said.untaken()
        swaps = {name: path for name, (path, _) in self.names.swaps.items() if name in self.nodes}
        readers = [each for node in self.resolved.values() for each in (node.wires, node.reader)]
        problems = [problem for each in readers for problem in each.problems]
        notes = [note for each in readers for note in each.notes]
        return Plan(
            table=self.names.table,
            targets=tuple(targets),
            order=tuple(self.order),
            settings=self.tree(),
            notes=list(dict.fromkeys([*self.names.notes, *notes, *self.notes])),
            nodes={name: self.nodes[name] for name in self.order},
            problems=list(dict.fromkeys([*self.names.problems, *problems, *self.problems])),
            missing=list(self.missing),
            swaps=swaps,
            meant=dict(self.names.meant),
            given=frozenset(
                name.removeprefix(".")
                for layer in (*self.names.layers, self.names.typed)
                for name, _ in leaves(layer, "")
            ),
            unknown=[found for each in readers for found in each.unknown],
        )


def _not_settings(name: str, node: Written) -> str:
    """Why a word cannot stand for an ingredient, and what to write."""
    if isinstance(node, Scalar) and node.text.startswith("@"):
        return (
            f"{name}: the import path '{node.text}' is not read from a file. "
            f"{worded('Type it on the command line', 'Give it in the overrides')}, or write it "
            f"in the recipe: {name}={node.text}"
        )
    word = node.text if isinstance(node, Scalar) else "..."
    return (
        f"{name} is an ingredient: wanted its settings, found {shown(node)}. "
        f"Another one is chosen with {name}.type={word}."
    )
