"""The parameters of an ingredient or a Config: names, annotations, defaults, documentation."""

import dataclasses
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from textmill.config.docstrings import field_docs
from textmill.config.values.annotations import hints
from textmill.config.values.typed_values import StandIn, plain

MISSING: Any = StandIn("MISSING")
"""Where a value would be and nobody gives one."""


@dataclass(frozen=True)
class Parameter:
    """One parameter of an ingredient."""

    name: str
    annotation: Any = inspect.Parameter.empty
    default: Any = MISSING
    doc: str = ""
    in_key: bool = True

    @property
    def required(self) -> bool:
        return self.default is MISSING


def settings_of(config: object) -> list[Parameter]:
    """The fields of a Config or dataclass; an instance's values are the defaults."""
    kind = config if isinstance(config, type) else type(config)
    types, docs = hints(kind), field_docs(kind)
    found = []
    for entry in dataclasses.fields(kind):
        if entry.init:
            if kind is not config:
                default = getattr(config, entry.name)
            elif entry.default_factory is not dataclasses.MISSING:
                default = entry.default_factory()
            else:
                default = MISSING if entry.default is dataclasses.MISSING else entry.default
            in_key = entry.metadata.get("in_key", True)
            doc = docs.get(entry.name, "")
            found.append(
                Parameter(entry.name, types.get(entry.name, entry.type), default, doc, in_key)
            )
    return found


def deciding(value: Any) -> Any:
    """Plain data of a value, without the fields that say where and how a run goes."""
    return _without_marked(value, plain(value))


def _without_marked(value: Any, data: Any) -> Any:
    """Plain data of a value, without the nested fields that are not in the key."""
    if dataclasses.is_dataclass(value) and isinstance(data, dict) and not isinstance(value, type):
        left_out = {p.name for p in settings_of(value) if not p.in_key}
        kept = {key: item for key, item in data.items() if key not in left_out}
        return {k: _without_marked(getattr(value, k, None), item) for k, item in kept.items()}
    if isinstance(value, Mapping) and isinstance(data, dict):
        pairs = zip(value.values(), data.items(), strict=True)
        return {str(key): _without_marked(item, made) for item, (key, made) in pairs}
    if isinstance(value, Sequence) and isinstance(data, list):
        return [_without_marked(item, made) for item, made in zip(value, data, strict=True)]
    return data
