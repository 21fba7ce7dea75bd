"""A recipe in a line for each ingredient: what it is, and which settings are not its defaults."""

import dataclasses
from collections.abc import Iterator, Mapping
from typing import Any

from weft.config import registries
from weft.config.component import Config, Given
from weft.config.help import written
from weft.config.ingredient import Like
from weft.config.kinds import type_name
from weft.config.parameters import settings_of
from weft.config.recipe import Recipe
from weft.config.values import plain

__all__ = ["outline"]


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
