"""The defaults of settings as a run wrote them down: told by the names of the components."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

from weft.config import registries
from weft.config.values import plain
from weft.errors import WeftError
from weft.recipes.changes import flat

__all__ = ["default_settings"]


def default_settings(settings: Mapping[str, Any]) -> dict[str, Any]:
    """The default of each setting that has one, by its dotted name.

    Only components that are registered are looked up: no code of a run is imported for it.

    Args:
        settings: The resolved settings of a run, nested.

    Example:
        >>> found = default_settings({"lr_scheduler": {"type": "linear", "warmup_steps": 400}})
        >>> found["lr_scheduler.end"]
        0.0
    """
    found: dict[str, Any] = {}
    for name, node in settings.items():
        if isinstance(node, Mapping):
            found |= {f"{name}.{key}": value for key, value in _of(name, node).items()}
    return found


def _of(ingredient: str, node: Mapping[str, Any]) -> dict[str, Any]:
    """The defaults below one ingredient."""
    from weft.recipes import defaults  # it imports all that a recipe may name

    standard = getattr(defaults, ingredient, None)
    registry = registries.for_ingredient(ingredient)
    found: dict[str, Any] = {}
    if inspect.isfunction(standard):
        given = inspect.signature(standard).parameters.values()
        return {p.name: plain(p.default) for p in given if p.default is not p.empty}
    kind: Any = type(standard)
    try:
        if registry is not None and "type" in node:
            kind = getattr(registry.get(str(node["type"])), "Config", None)
            name = registry.name_of(getattr(standard, "owner", None))
            found = {} if name is None else {"type": name}
    except (WeftError, ImportError):
        return {}
    if not (isinstance(kind, type) and dataclasses.is_dataclass(kind)):
        return found
    return found | flat({f.name: plain(v) for f in dataclasses.fields(kind) for v in _default(f)})


def _default(of: dataclasses.Field[Any]) -> list[Any]:
    """The default in a list, which is empty where there is none."""
    if of.default_factory is not dataclasses.MISSING:
        return [of.default_factory()]
    return [] if of.default is dataclasses.MISSING else [of.default]
