"""What of a value decides the result of a run: all but the settings marked ``in_key=False``."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from weft.config.parameters import settings_of
from weft.config.values import plain

__all__ = ["deciding"]


def deciding(value: Any) -> Any:
    """Plain data of a value, without the fields that say where and how a run goes.

    Example:
        >>> from weft.config.component import Component, Config, setting
        >>> class Saver(Component):
        ...     class Config(Config):
        ...         every: int = 5
        ...         keep: int = setting(3, in_key=False)
        >>> deciding(Saver.Config()), deciding([Saver.Config(every=2)])
        ({'every': 5}, [{'every': 2}])
    """
    return _without_marked(value, plain(value))


def _without_marked(value: Any, data: Any) -> Any:
    """Plain data of a value, without the nested fields that are not in the key."""
    if dataclasses.is_dataclass(value) and isinstance(data, dict) and not isinstance(value, type):
        left_out = {p.name for p in settings_of(value) if not p.decides(p.default)}
        kept = {key: item for key, item in data.items() if key not in left_out}
        return {k: _without_marked(getattr(value, k, None), item) for k, item in kept.items()}
    if isinstance(value, Mapping) and isinstance(data, dict):
        pairs = zip(value.values(), data.items(), strict=True)
        return {str(key): _without_marked(item, made) for item, (key, made) in pairs}
    if isinstance(value, Sequence) and isinstance(data, list):
        return [_without_marked(item, made) for item, made in zip(value, data, strict=True)]
    return data
