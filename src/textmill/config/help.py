"""Help in words: of a recipe and its ingredients, in a line for each, and of one component."""

import dataclasses
import inspect
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from textmill.config.component import Config, Given
from textmill.config.docstrings import first_line, without_markup
from textmill.config.ingredient import (
    EVALUATION_DATA,
    STANDARD,
    BuiltFrom,
    IngredientTable,
    Like,
    as_config,
    dependencies_of,
    parameters_of,
)
from textmill.config.merge import concept_of
from textmill.config.parameters import MISSING, Parameter, settings_of
from textmill.config.planning.plan import Plan, make_plan
from textmill.config.planning.wiring import IngredientNode, produced
from textmill.config.recipe import Recipe, experiments
from textmill.config.registry import Registry, all_registries, find_name, suggest
from textmill.config.values.annotations import members, structure_of, type_name, unwrapped
from textmill.config.values.raw_values import Entries, written
from textmill.config.values.typed_values import INVALID, plain
from textmill.errors import Problem, UserError

TARGETS = (
    "tokenizer", "module", "task", "optimizer", "lr_scheduler", "trainer",
    "train_data", "valid_data", "test_data", "reporters", "callbacks",
)  # fmt: skip
WANTED = ("tokenizer", "module", "train_data")

PROVIDED: Mapping[str, str] = {
    "env": "where it computes: device, rank, world_size",
    "xp": "the run: its folder, recipe, key and overrides",
    "entry_point": "the command: train, check, test, prepare, evaluate or predict",
}


def recipe_help(
    table: IngredientTable,
    defaults: IngredientTable,
    *,
    recipe: str = "",
    layers: Sequence[Entries] = (),
    words: Sequence[str] = (),
    everything: bool = False,
    usage: Mapping[str, str],
    closed: Collection[str] = (),
) -> tuple[str, list[Problem]]:
    """The whole help as text; an incomplete recipe has one too, with what is missing in its place.

    Returns:
        The text, and the problems in it but for ingredients that are not there yet.
    """
    known = {**defaults.ingredients, **table.ingredients}
    reached = [name for name in TARGETS if name in known or name in WANTED]
    plan = make_plan(
        table,
        defaults=defaults,
        layers=layers,
        words=words,
        targets=reached,
        draft=True,
        closed=closed,
    )
    name = recipe or (str(table.path) if table.path else table.name)
    lines = [without_markup(table.doc.strip()) or table.name, ""]
    width = max((len(command) for command in usage), default=0)
    lines += [
        f"  textmill {command.ljust(width)} {name} [name.setting=value ...]  {line}"
        for command, line in usage.items()
    ]
    planned = [*plan.order, *plan.missing]
    standard = [name for name in STANDARD if name in planned]
    hidden = 0
    for ingredient in dict.fromkeys([*standard, *planned]):
        shown, more = _ingredient_lines(plan, ingredient, everything=everything)
        lines += ["", *shown]
        hidden += more
    for ingredient in EVALUATION_DATA if "train_data" in known else ():
        if ingredient not in known and ingredient not in plan.nodes:
            lines += ["", f"**{ingredient}**: none; {ingredient}.path=... is read as train_data is"]
    lines += ["", *(f"**{given}** (given by the run): {doc}" for given, doc in PROVIDED.items())]
    if hidden:
        lines += ["", f"{hidden} more settings: textmill help {name} --all"]
    missing = tuple(f"no '{name}' is specified" for name in plan.missing)
    others = [problem for problem in plan.problems if not problem.message.startswith(missing)]
    lines += ["", *[f"!!! {problem} !!!" for problem in others]] if others else []
    return "\n".join(lines) + "\n", others


def _ingredient_lines(plan: Plan, name: str, *, everything: bool) -> tuple[list[str], int]:
    """The lines of an ingredient, and how many of its settings are left out."""
    if name in plan.missing:
        return [f"**{name}**: !!! No {name} specified !!!"], 0
    node = plan.nodes[name]
    head = f"**{name}** ({_made_name(node, plan)})"
    doc = node.ingredient.doc if node.value is node.ingredient.value else first_line(node.value)
    lines, hidden = [f"{head}: {doc}" if doc else head], 0
    for parameter in node.wiring.settings:
        value = node.settings.get(parameter.name, MISSING)
        shown = setting_lines(name, parameter, value, kind=node.kind, everything=everything)
        lines += shown
        hidden += len(setting_lines(name, parameter, value)) - len(shown)
    return lines, hidden


def _made_name(node: IngredientNode, plan: Plan) -> str:
    if isinstance(node.value, BuiltFrom):
        return f"{type_name(produced(node, plan.nodes))}, built from {node.value.name}"
    config = as_config(node.value)
    if config is not None:
        owner = getattr(config, "owner", config)
        name = type_name(owner) if node.name != "model" else f"{type_name(owner)}.Config"
        filed = node.type_name if node.type_name and node.type_name[0] != "@" else None
        return f"{name}, type {filed}" if filed else name
    return type_name(produced(node, plan.nodes))


def setting_lines(
    owner: str, parameter: Parameter, value: Any, *, kind: Any = None, everything: bool = True
) -> list[str]:
    """One line for a setting; a structure has one for each of its fields, set or not.

    Without ``everything``, only what people change first of a Config's ``kind``, and what this
    recipe did.
    """
    if not everything and (first := getattr(kind, "shown_first", None)) is not None:
        usual = {p.name: p.default for p in settings_of(kind)}.get(parameter.name, MISSING)
        if parameter.name not in first and value is not MISSING and usual == value:
            return []
    name, inner = f"{owner}.{parameter.name}", _structure(parameter, value)
    if inner is None:
        return [_line(name, parameter, value)]
    lines = [_line(name, parameter, None)]
    for p in settings_of(inner if value is None else value):
        every = everything or value is None
        lines += setting_lines(name, p, p.default, kind=inner, everything=every)
    return lines


def _structure(parameter: Parameter, value: Any) -> Any:
    """The dataclass each field of which has a line of its own; None if the setting has one."""
    kind = structure_of(parameter.annotation, value)
    whole = kind is not None and (value is None or type(value) is kind)
    return kind if whole and not hasattr(kind, "parse") else None


def _line(name: str, parameter: Parameter, value: Any) -> str:
    if value is MISSING or value is INVALID:
        shown = "(required)" if value is MISSING else "(not valid)"
    elif value is None and parameter.default is not None and parameter.default is not MISSING:
        shown = ""
    else:
        shown = f"(default={written(plain(value))})"
    head = f"  {name} ({_kind(parameter.annotation)}):"
    return " ".join(filter(None, (head, parameter.doc, shown)))


def _kind(annotation: Any) -> str:
    """What a setting can be: of components the registry's word, as in messages, else the type."""
    kinds = [unwrapped(kind) for kind in members(annotation) or (annotation,)]
    found = [concept_of((kind.owner,)) if hasattr(kind, "owner") else None for kind in kinds]
    if not any(found):
        return type_name(annotation)
    words = [word or type_name(kind) for word, kind in zip(found, kinds, strict=True)]
    return " or ".join("null" if word == "None" else word for word in dict.fromkeys(words))


def outline(recipe: Recipe) -> list[str]:
    r"""The ingredients of a recipe in their order, as ``textmill show`` prints them.

    A parameter that ``given`` fills by an ingredient of another name stands with it behind the
    settings: ``vocabulary<-target_vocabulary``.
    """
    width = max(map(len, recipe.ingredients), default=0)
    return [
        f"  {name.ljust(width)}  {_outline_line(value)}"
        for name, value in recipe.ingredients.items()
    ]


def _outline_line(value: Any) -> str:
    rebound: Mapping[str, str] = {}
    if isinstance(value, Given):
        value, rebound = value.config, value.names
    if isinstance(value, Like):
        head, changed = f"like {value.name}", list(value.settings.items())
    elif isinstance(value, Config):
        head, changed = _outline_kind(value), list(_changed(value))
    else:
        return type_name(value)
    words = [f"{name}={written(plain(setting))}" for name, setting in changed]
    words += [f"{parameter}<-{name}" for parameter, name in rebound.items()]
    return f"{head}: {' '.join(words)}" if words else head


def _outline_kind(config: Config) -> str:
    owner = getattr(config, "owner", type(config))
    filed = find_name(owner)
    return filed[1] if filed else type_name(owner)


def _changed(config: object) -> Iterator[tuple[str, Any]]:
    """Settings that are not as the class has them, those of structures by dotted names."""
    standard = {setting.name: setting.default for setting in settings_of(type(config))}
    for name in standard:
        value = getattr(config, name)
        if value == standard[name]:
            continue
        if not dataclasses.is_dataclass(value) or not isinstance(plain(value), dict):
            yield name, value
            continue
        if isinstance(value, Config) and type(value) is not type(standard[name]):
            yield f"{name}.type", _outline_kind(value)
        for inner, setting in _changed(value):
            yield f"{name}.{inner}", setting


def describe(name: str) -> str:
    """Docstring, settings and needs of every component of that name."""
    known_as = all_registries()
    found = [(registry, name) for registry in known_as.values() if name in registry.names()]
    concept, _, rest = name.partition("/")
    found = found or [
        (registry, rest)
        for plural, registry in known_as.items()
        if concept in (plural, registry.concept) and rest in registry.names()
    ]
    if not found:
        known = [entry for registry in known_as.values() for entry in registry.names()]
        raise UserError(
            f"nothing is registered as '{name}'. {suggest(name, known)}'textmill list' lists all."
        )
    return "\n".join(_component(registry, entry) for registry, entry in found)


def _component(registry: Registry, name: str) -> str:
    entry = registry.get(name)
    lines = [f"{registry.concept} {name} ({entry.__module__}.{entry.__qualname__})", ""]
    doc = vars(entry).get("__doc__") if isinstance(entry, type) else entry.__doc__
    lines += [without_markup(inspect.cleandoc(doc)), ""] if doc else []
    if registry is experiments:
        lines += [*outline(entry()), "", f"textmill help {name} --all prints every setting."]
        return "\n".join(lines) + "\n"
    config = as_config(entry)
    settings = settings_of(config) if config is not None else parameters_of(entry)
    needs: list[Parameter] = dependencies_of(config) if config is not None else []
    for setting in settings:
        lines += setting_lines(registry.concept, setting, setting.default)
    if needs:
        listed = ", ".join(f"{need.name} ({type_name(need.annotation)})" for need in needs)
        lines += ["", f"Built from the ingredients: {listed}"]
    return "\n".join(lines) + "\n"
