"""What a registered component is, in words: for ``weft show``."""

import inspect
from typing import Any

from weft.config import registries
from weft.config.docs import without_markup
from weft.config.help import setting_lines
from weft.config.ingredient import as_config, dependencies_of, parameters_of
from weft.config.kinds import type_name
from weft.config.outline import outline
from weft.config.parameters import Parameter, settings_of
from weft.config.registry import Registry
from weft.config.tree import near
from weft.errors import UserError

__all__ = ["describe"]


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
