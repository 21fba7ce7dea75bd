"""The plan: what will be built, from what, with which settings; every problem beforehand."""

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textmill.config.component import Config, Given
from textmill.config.foreign_names import class_here, setting_here
from textmill.config.ingredient import EVALUATION_DATA, STANDARD, IngredientTable
from textmill.config.parameters import MISSING, Parameter
from textmill.config.planning.overrides import Names
from textmill.config.planning.resolve import Resolver
from textmill.config.planning.session import Session
from textmill.config.planning.wiring import IngredientNode, produced
from textmill.config.registry import suggest
from textmill.config.values.annotations import fits, type_name
from textmill.config.values.raw_values import Entries
from textmill.config.values.typed_values import INVALID, plain
from textmill.errors import PlanError, Problem

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
        first = _Planner(names, closed)
        first.walk(targets)
        whole = _Planner(names, closed)  # a word may mean what these targets do not reach
        whole.walk([name for name in STANDARD if name in names.known and names.defined(name)])
        names.place_bare_words(bare, first.dotted_settings(), whole.dotted_settings())
    planner = _Planner(names, closed)
    planner.walk(targets)
    plan = planner.finished(targets)
    if plan.problems and not draft:
        raise PlanError(plan.problems)
    return plan


class _Planner:
    """Walks from the targets to everything they need, and notes what is wrong on the way."""

    def __init__(self, names: Names, closed: Collection[str]) -> None:
        self.names = names
        self.resolver = Resolver(names, closed)
        self.problems = self.resolver.problems
        self.notes = self.resolver.notes
        self.nodes: dict[str, IngredientNode] = {}
        self.order: list[str] = []
        self.missing: dict[str, list[str]] = {}

    def dotted_settings(self) -> list[str]:
        """Every setting of the plan by its dotted name."""
        found: list[str] = []
        for node in (self.nodes[name] for name in self.order):
            for key, value in node.settings.items():
                known = value is not MISSING and value is not INVALID
                found += _dotted(plain(value) if known else None, f"{node.name}.{key}")
        return found

    def walk(self, targets: Sequence[str]) -> None:
        """Plans the targets and everything they need."""
        for target in targets:
            if self.names.defined(target):
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
        if name in self.nodes or name not in self.names.known:
            return
        node = self.nodes[name] = self.resolver.node(name)
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
                    guess = self.names.nearest(name, keys, self.dotted_settings())
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
        """The plan as found."""
        self.unreached()
        self.report_missing()
        for name, text in self.names.table.objects.items():
            if name in self.nodes or name in self.unfilled:
                self.problems.append(Problem(text))  # the default would be used, and not said
        if "trainer" in targets:
            self.note_unused()
        swaps = {name: path for name, (path, _) in self.names.swaps.items() if name in self.nodes}
        problems = [*self.names.problems, *self.resolver.problems]
        notes = [*self.names.notes, *self.resolver.notes]
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
            unknown=self.resolver.settings.unknown,
        )


def _dotted(tree: Any, name: str) -> list[str]:
    if isinstance(tree, dict) and tree:
        return [found for key, item in tree.items() for found in _dotted(item, f"{name}.{key}")]
    return [] if name.endswith(".type") else [name]
