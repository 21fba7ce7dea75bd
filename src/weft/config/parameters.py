"""What an ingredient or a Config asks for: names, annotations, defaults, what is said of each."""

import dataclasses
import inspect
from dataclasses import dataclass
from typing import Any, Literal

from typing_extensions import override

from weft.config.docs import field_docs
from weft.config.kinds import hints

__all__ = ["MISSING", "Parameter", "settings_of"]


class _Missing:
    """Where a value would be and nobody gives one."""

    @override
    def __repr__(self) -> str:
        return "MISSING"


MISSING: Any = _Missing()


@dataclass(frozen=True)
class Parameter:
    """One thing an ingredient asks for, whoever is to give it."""

    name: str
    annotation: Any = inspect.Parameter.empty
    default: Any = MISSING
    doc: str = ""
    in_key: bool | Literal["set"] = True

    def decides(self, value: object) -> bool:
        """Whether that value of it is in the key."""
        return bool(self.in_key) and not (self.in_key == "set" and not value)

    @property
    def required(self) -> bool:
        """Whether it has no default."""
        return self.default is MISSING


def settings_of(config: object) -> list[Parameter]:
    """The fields of a Config or dataclass; an instance's values are the defaults."""
    kind = config if isinstance(config, type) else type(config)
    types, docs = hints(kind), field_docs(kind)
    found = []
    for entry in dataclasses.fields(kind):
        if entry.init:
            default = _default(entry) if kind is config else getattr(config, entry.name)
            in_key = entry.metadata.get("in_key", True)
            doc = docs.get(entry.name, "")
            found.append(
                Parameter(entry.name, types.get(entry.name, entry.type), default, doc, in_key)
            )
    return found


def _default(entry: dataclasses.Field[Any]) -> Any:
    if entry.default_factory is not dataclasses.MISSING:
        return entry.default_factory()
    return MISSING if entry.default is dataclasses.MISSING else entry.default
