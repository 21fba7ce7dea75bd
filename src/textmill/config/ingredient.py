"""One ingredient of a recipe: a function, a class, a component or its Config, and its needs."""

import dataclasses
import inspect
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from textmill.config.component import Component, Config, Given, runtime_parameters
from textmill.config.docstrings import argument_docs, field_docs, first_line
from textmill.config.parameters import MISSING, Parameter
from textmill.config.values.annotations import hints
from textmill.errors import Place

STANDARD = (
    "tokenizer", "labels", "model", "module", "task", "optimizer", "lr_scheduler", "trainer",
    "train_data", "valid_data", "test_data", "reporters", "callbacks", "env", "xp", "entry_point",
)  # fmt: skip

REPLACEABLE = frozenset(STANDARD) - {"env", "xp", "entry_point"}
"""Names that mean the same in every recipe: a script that binds one wants it to be used."""

WITH_DEFAULT = frozenset({"module", "task", "optimizer", "lr_scheduler", "trainer", "reporters"})
"""Those that are something where a recipe says nothing; ``None`` for another is what it is then."""

EVALUATION_DATA = ("valid_data", "test_data")
"""None where a recipe has none; a setting of one makes it as the training data are."""
DATA = ("train_data", *EVALUATION_DATA)


@dataclass(frozen=True)
class Like:
    """Follows another ingredient, setting by setting: :func:`textmill.config.recipe.like`."""

    name: str
    settings: Mapping[str, Any]
    of_other_rows: bool = False
    """Data that no recipe names: in order, and of a path of its own."""


@dataclass(frozen=True)
class BuiltFrom:
    """An ingredient built by the Config that another ingredient is: ``module`` from ``model``."""

    name: str


@dataclass(frozen=True)
class Ingredient:
    """A name of the recipe and what it stands for."""

    name: str
    value: Any
    place: Place | None = None

    @property
    def doc(self) -> str:
        return first_line(documented(self.value))


@dataclass(frozen=True)
class IngredientTable:
    """The ingredients of one recipe, or of the library's defaults, by name."""

    name: str
    ingredients: Mapping[str, Ingredient]
    doc: str = ""
    path: Path | None = None
    source: str = ""
    module: ModuleType | None = None
    files: Mapping[Path, bytes] = field(default_factory=dict)
    """The script, and what it imports from its folder: resolved paths, each with its bytes."""
    swaps: Mapping[str, str] = field(default_factory=dict)
    objects: Mapping[str, str] = field(default_factory=dict)
    """What else a script binds by public names: for each, that it is no ingredient, and where."""
    mentioned: frozenset[str] = frozenset()
    """Names that the source uses itself, as in ``Classifier.Config(encoder=encoder)``."""


def documented(value: Any) -> Any:
    """The object whose docstring describes the ingredient; a Config's component speaks for it."""
    config = as_config(value)
    if config is None:
        return value if callable(value) else None
    kind = config if isinstance(config, type) else type(config)
    return getattr(kind, "owner", kind)


def as_config(value: Any) -> Config | type[Config] | None:
    """The Config (or, of a component class, its Config class) that an ingredient's value means."""
    if isinstance(value, Given):
        return value.config
    if isinstance(value, Config):
        return value
    if isinstance(value, type):
        if issubclass(value, Config):
            return value
        if issubclass(value, Component) and hasattr(value, "Config"):
            found: type[Config] = value.Config
            return found
    return None


def is_ingredient(value: Any) -> bool:
    """Whether a public top-level name bound to this value is an ingredient."""
    wanted = (Config, Given, Like, BuiltFrom)
    return inspect.isroutine(value) or isinstance(value, (type, wanted))


def dependencies_of(config: Config | type[Config]) -> list[Parameter]:
    """What ``build`` of the Config asks for."""
    kind = config if isinstance(config, type) else type(config)
    types = hints(kind.build if kind.build is not Config.build else kind.owner.__init__)
    return [_parameter(p, types, {}) for p in runtime_parameters(config).values()]


def parameters_of(value: Any) -> list[Parameter]:
    """The parameters of a function or of a class' constructor."""
    variadic = (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL)
    try:
        found = [p for p in inspect.signature(value).parameters.values() if p.kind not in variadic]
    except (TypeError, ValueError):
        return []
    made: Any = value.__init__ if isinstance(value, type) else value  # type: ignore[misc]
    types, docs = hints(made), argument_docs(value)
    if dataclasses.is_dataclass(value) and isinstance(value, type):
        types, docs = hints(value), {**docs, **field_docs(value)}
    return [_parameter(p, types, docs) for p in found]


def _parameter(
    found: inspect.Parameter, types: Mapping[str, Any], docs: Mapping[str, str]
) -> Parameter:
    default = MISSING if found.default is inspect.Parameter.empty else found.default
    annotation = types.get(found.name, found.annotation)
    return Parameter(found.name, annotation, default, docs.get(found.name, ""))
