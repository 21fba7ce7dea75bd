"""A recipe in a line for each ingredient, a component in all its words."""

import dataclasses
import inspect
from collections.abc import Iterator, Mapping
from typing import Any

from weft.config import registries
from weft.config.component import Config, Given
from weft.config.docs import without_markup
from weft.config.help import setting_lines, written
from weft.config.ingredient import Like, as_config, dependencies_of, parameters_of
from weft.config.kinds import type_name
from weft.config.parameters import Parameter, settings_of
from weft.config.recipe import Recipe
from weft.config.registry import Registry
from weft.config.tree import near
from weft.config.values import plain
from weft.errors import UserError

__all__ = ["describe", "outline"]


def outline(recipe: Recipe) -> list[str]:
    r"""The ingredients of a recipe in their order, as ``weft show`` prints them.

    A parameter that ``given`` fills by an ingredient of another name stands with it behind the
    settings: ``vocabulary<-target_vocabulary``.

    Example:
        >>> from weft.config.recipe import like
        >>> class Words(Config):
        ...     path: str = ""
        ...     shuffle: bool = True
        >>> data = Words(path="train.txt")
        >>> recipe = Recipe(train_data=data, valid_data=like("train_data", shuffle=False))
        >>> print(*outline(recipe), sep="\n")
          train_data  Words: path=train.txt
          valid_data  like train_data: shuffle=false
    """
    width = max(map(len, recipe.ingredients), default=0)
    return [f"  {name.ljust(width)}  {_line(value)}" for name, value in recipe.ingredients.items()]


def _line(value: Any) -> str:
    rebound: Mapping[str, str] = {}
    if isinstance(value, Given):
        value, rebound = value.config, value.names
    if isinstance(value, Like):
        head, changed = f"like {value.name}", list(value.settings.items())
    elif isinstance(value, Config):
        head, changed = _kind(value), list(_changed(value))
    else:
        return type_name(value)
    words = [f"{name}={written(plain(setting))}" for name, setting in changed]
    words += [f"{parameter}<-{name}" for parameter, name in rebound.items()]
    return f"{head}: {' '.join(words)}" if words else head


def _kind(config: Config) -> str:
    """The name that files have for it, else that of its class."""
    owner = getattr(config, "owner", type(config))
    filed = registries.find_name(owner)
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
            yield f"{name}.type", _kind(value)
        for inner, setting in _changed(value):
            yield f"{name}.{inner}", setting


def describe(name: str) -> str:
    """Docstring, settings and needs of every component of that name.

    Args:
        name: A registered name, or ``concept/name`` where two concepts share one.

    Raises:
        UserError: Nothing is registered under the name; the nearest is shown.
    """
    found = _named(name)
    if not found:
        known = [
            entry for registry in registries.all_registries().values() for entry in registry.names()
        ]
        raise UserError(
            f"nothing is registered as '{name}'. {near(name, known)}'weft list' lists all."
        )
    return "\n".join(_component(registry, entry) for registry, entry in found)


def _named(name: str) -> list[tuple[Registry[Any], str]]:
    each = list(registries.all_registries().items())
    found = [(registry, name) for _, registry in each if name in registry.names()]
    concept, _, rest = name.partition("/")
    if not found and rest:
        found = [
            (r, rest) for plural, r in each if concept in (plural, r.concept) and rest in r.names()
        ]
    return found


def _component(registry: Registry[Any], name: str) -> str:
    entry = registry.get(name)
    lines = [f"{registry.concept} {name} ({entry.__module__}.{entry.__qualname__})", ""]
    doc = vars(entry).get("__doc__") if isinstance(entry, type) else entry.__doc__
    lines += [without_markup(inspect.cleandoc(doc)), ""] if doc else []
    if registry is registries.experiments:
        lines += [*outline(entry()), "", f"weft help {name} prints every setting."]
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
