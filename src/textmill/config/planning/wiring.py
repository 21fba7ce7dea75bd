"""What an ingredient is once its layers are known, and which of its parameters are settings."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from textmill.config.component import Config, Given
from textmill.config.ingredient import (
    STANDARD,
    BuiltFrom,
    Ingredient,
    Like,
    as_config,
    dependencies_of,
    parameters_of,
)
from textmill.config.merge import Settings
from textmill.config.parameters import MISSING, Parameter, settings_of
from textmill.config.values.annotations import PLAIN, hints, is_settable, is_value_type, unwrapped
from textmill.config.values.raw_values import Entries
from textmill.config.values.typed_values import INVALID, plain


@dataclass
class Wiring:
    """The parameters of one ingredient, sorted into what a person sets and what others give."""

    settings: list[Parameter] = field(default_factory=list)
    dependencies: dict[str, tuple[str, Parameter]] = field(default_factory=dict)
    problems: list[str] = field(default_factory=list)
    unfilled: list[str] = field(default_factory=list)
    """What it would take and nobody gives: it does without."""


@dataclass
class IngredientNode:
    """One reached ingredient: its value after swaps, its settings and what it is built from."""

    ingredient: Ingredient
    value: Any
    config: Any = None
    settings: dict[str, Any] = field(default_factory=dict)
    wiring: Wiring = field(default_factory=Wiring)
    kind: Any = None
    type_name: str | None = None
    layers: list[Entries] = field(default_factory=list)
    """What files and words set of it, the weakest first, without ``type``."""
    like: "IngredientNode | None" = None
    """The ingredient whose settings are its defaults."""
    wires: Settings = field(default_factory=Settings)
    """What read its type, with the problems and notes of that."""
    reader: Settings = field(default_factory=Settings)
    """What read its settings, with the problems and notes of that."""

    @property
    def name(self) -> str:
        return self.ingredient.name

    @property
    def is_config(self) -> bool:
        return self.kind is not None

    @property
    def needs(self) -> list[str]:
        """The names of the ingredients it is built from, in the order of its parameters."""
        return list(dict.fromkeys(name for name, _ in self.wiring.dependencies.values()))


def reached(
    nodes: Mapping[str, IngredientNode], targets: Iterable[str], *, without: Collection[str] = ()
) -> list[str]:
    """The names of the planned targets and of all that they are built from, in the plan's order."""
    found: set[str] = set()
    waiting = list(targets)
    while waiting:
        name = waiting.pop()
        if name in nodes and name not in found and name not in without:
            found.add(name)
            waiting += nodes[name].needs
    return [name for name in nodes if name in found]


def wire(name: str, value: Any, known: Callable[[str], bool]) -> Wiring:
    """Sorts the parameters of a function, class or Config by name and annotation."""
    config = as_config(value)
    if config is not None:
        renamed = value.names if isinstance(value, Given) else {}
        wiring, needed = Wiring(settings_of(config)), dependencies_of(config)
        kind = config if isinstance(config, type) else type(config)
        owner = getattr(kind, "owner", kind).__name__
        for key in sorted({p.name for p in wiring.settings} & {p.name for p in needed}):
            # A run's file could not say which of the two it is.
            wiring.problems.append(
                f"'{key}' is a setting of {name} and also an ingredient that {owner} is "
                "built from: a run with it could be trained, but not loaded. Rename the field of "
                f"{owner}.Config."
            )
        if name != "model":
            add_dependencies(wiring, needed, renamed, known)
        return wiring
    wiring = Wiring()
    for parameter in parameters_of(value):
        _sort(wiring, name, parameter, known)
    return wiring


def add_dependencies(
    wiring: Wiring,
    parameters: Sequence[Parameter],
    renamed: Mapping[str, str],
    known: Callable[[str], bool],
) -> None:
    """Adds what ``build`` asks for; one that nobody defines and that has a default keeps it."""
    for parameter in parameters:
        wanted = renamed.get(parameter.name, parameter.name)
        if known(wanted) or parameter.required or parameter.name in renamed:
            wiring.dependencies[parameter.name] = (wanted, parameter)
        else:
            wiring.unfilled.append(wanted)


def _sort(wiring: Wiring, owner: str, parameter: Parameter, known: Callable[[str], bool]) -> None:
    annotation, name = unwrapped(parameter.annotation), parameter.name
    if annotation in PLAIN:
        wiring.settings.append(parameter)
    elif known(name):
        if is_value_type(annotation) and name not in STANDARD:
            wiring.problems.append(
                f"the parameter '{name}' of {owner} is both: its type makes it a setting and its "
                f"name an ingredient. Rename one of the two."
            )
        wiring.dependencies[name] = (name, parameter)
    elif name not in STANDARD and annotation in (inspect.Parameter.empty, Any):
        _sort_untyped(wiring, owner, parameter)
    elif name not in STANDARD and is_settable(annotation):
        wiring.settings.append(parameter)
    elif parameter.required:
        wiring.dependencies[name] = (name, parameter)
    else:
        wiring.unfilled.append(name)


def _sort_untyped(wiring: Wiring, owner: str, parameter: Parameter) -> None:
    if parameter.required:
        wiring.problems.append(
            f"the parameter '{parameter.name}' of {owner} needs an annotation to be a setting, or "
            f"an ingredient of its name."
        )
    elif parameter.default is not None and is_settable(type(parameter.default)):
        wiring.settings.append(
            Parameter(parameter.name, type(parameter.default), parameter.default, parameter.doc)
        )
    else:
        wiring.unfilled.append(parameter.name)


def produced(node: IngredientNode, nodes: Mapping[str, IngredientNode]) -> Any:
    """The type of what a consumer of the ingredient receives, as far as it is written down."""
    name, value = node.name, node.value
    if isinstance(value, BuiltFrom):
        source = nodes.get(value.name)
        if source is None or not source.is_config:
            return Any
        name, value = "module", source.value
    config = as_config(value)
    if config is not None:
        kind = config if isinstance(config, type) else type(config)
        build = kind.build if kind.build is not Config.build else None
        if name == "model":
            return kind
        return kind.owner if build is None else hints(build).get("return", Any)
    if isinstance(value, type):
        return value
    if isinstance(value, Like) or value is MISSING:
        return Any
    return hints(value).get("return", Any)


def dotted_settings(nodes: Iterable[IngredientNode]) -> list[str]:
    """The dotted names of all settings, those of structures by their fields."""
    return [
        name
        for node in nodes
        for key, value in node.settings.items()
        for name in _dotted(
            None if value is MISSING or value is INVALID else plain(value), f"{node.name}.{key}"
        )
    ]


def _dotted(tree: Any, name: str) -> list[str]:
    if isinstance(tree, dict) and tree:
        return [found for key, item in tree.items() for found in _dotted(item, f"{name}.{key}")]
    return [] if name.endswith(".type") else [name]


def setting_names(name: str, value: Any) -> list[str]:
    """The settings of an ingredient's value, whatever it is built from."""
    settings = [] if value is MISSING else wire(name, value, lambda _: True).settings
    return [parameter.name for parameter in settings]


def owner_of(value: Any) -> Any:
    """The component that an ingredient's value stands for, else the value."""
    config = as_config(value)
    return getattr(config, "owner", None) if config is not None else value


def is_same(entry: Any, value: Any) -> bool:
    """Whether both stand for the same component."""
    first, second = as_config(entry), as_config(value)
    if first is None or second is None:
        return entry is value
    return getattr(first, "owner", first) is getattr(second, "owner", second)
