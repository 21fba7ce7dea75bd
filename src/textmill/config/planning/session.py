"""Building what was planned: on demand, dependencies first, each ingredient once."""

import dataclasses
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from textmill.config.component import Config
from textmill.config.ingredient import BuiltFrom
from textmill.config.parameters import settings_of
from textmill.config.planning.wiring import IngredientNode
from textmill.config.validators import refuse_read_once
from textmill.config.values.annotations import DEVICE, members, torch_kind, unwrapped
from textmill.config.values.typed_values import plain
from textmill.errors import Place, TextmillError, UserError

LIBRARY = Path(__file__).parents[2]
READ_AGAIN = ("train_data", "valid_data", "test_data", "reporters", "callbacks")
"""Ingredients that several others read, or one of them again and again."""


class Session:
    """The objects of one run by name.

    An exception inside an ingredient goes through as it is, with a note that names the ingredient.
    """

    def __init__(self, nodes: Mapping[str, IngredientNode], provided: Mapping[str, object]) -> None:
        self.nodes = nodes
        self.tasks: dict[str, Session] = {}
        """Those of the tasks that are trained together, by name."""
        self.later: dict[str, Callable[[], Any]] = {}
        """What is made when it is first asked for: ingredients that come from other sessions."""
        self._objects: dict[str, Any] = dict(provided)
        self._built_from: dict[str, Config] = {}
        self._order: list[str] = []

    def has(self, name: str) -> bool:
        """Whether the plan reaches the ingredient or the run provides it."""
        return name in self._objects or name in self.nodes or name in self.later

    @property
    def each_task(self) -> dict[str, "Session"]:
        """The sessions that have a task: those of :attr:`tasks`, else this one under no name."""
        return self.tasks or {"": self}

    def get(self, name: str) -> Any:
        """The object of that name; it is built when it is first asked for."""
        if name in self.later:
            self._objects[name] = self.later.pop(name)()
        if name not in self._objects:
            if name not in self.nodes:
                raise KeyError(f"'{name}' is not in the plan; planned: {', '.join(self.nodes)}.")
            node = self.nodes[name]
            needed = {
                key: self.get(wanted) for key, (wanted, _) in node.wiring.dependencies.items()
            }
            try:
                self._objects[name], config = _made(node, needed)
                if config is not None:
                    self._built_from[name] = config
                if name in READ_AGAIN:
                    what = "The data" if name.endswith("_data") else name
                    refuse_read_once(self._objects[name], what)
            except Exception as error:
                _note_ingredient(error, name, node.ingredient.place)
                raise
            self._order.append(name)
        return self._objects[name]

    @property
    def built(self) -> dict[str, Any]:
        """The Configs as built, with the sizes that came from data, as plain data by ingredient."""
        found = {}
        for name in self._order:
            made = self._objects[name]
            config = made if isinstance(made, Config) else getattr(made, "config", None)
            if not isinstance(config, Config):  # a class of a person's own need not keep it
                config = self._built_from.get(name)
            if isinstance(config, Config) and (config is made or config.owner is type(made)):
                found[name] = plain(config)  # of another's Config, its type would be wrong
        return found


def _note_ingredient(error: Exception, name: str, place: Place | None) -> None:
    """Says which ingredient an error is of, and where it was written if that is not in textmill.

    A setting of a shipped experiment was typed elsewhere, and a message that begins with the
    ingredient needs no note.
    """
    own_script = place is not None and place.source.endswith(".py")
    shipped = place is None or not own_script or Path(place.source).is_relative_to(LIBRARY)
    if shipped and isinstance(error, UserError) and str(error).startswith((f"{name}:", f"{name}.")):
        return
    is_ours = shipped and isinstance(error, TextmillError)
    where = "" if is_ours or place is None else f" ({place})"
    error.add_note(f"in the ingredient '{name}'{where}")


def _made(node: IngredientNode, needed: dict[str, Any]) -> tuple[Any, Config | None]:
    value = node.value
    if isinstance(value, BuiltFrom):
        config = needed.pop(value.name)
        if not isinstance(config, Config):
            raise TypeError(
                f"{node.name} is built from {value.name}, which must be a component's Config, "
                f"but is a {type(config).__name__}."
            )
        return config.build(**needed), config
    if node.is_config:
        config = _to_torch(node.config, type(node.config))
        return (config if node.name == "model" else config.build(**needed)), config
    kinds = {parameter.name: parameter.annotation for parameter in node.wiring.settings}
    settings = {name: _to_torch(item, kinds[name]) for name, item in node.settings.items()}
    return value(**settings, **needed), None


def _to_torch(value: Any, annotation: Any) -> Any:
    """The value as an ingredient receives it: dtypes and devices become torch's objects."""
    annotation = unwrapped(annotation)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        changed = {
            parameter.name: made
            for parameter in settings_of(value)
            if (made := _to_torch(parameter.default, parameter.annotation)) is not parameter.default
        }
        return dataclasses.replace(value, **changed) if changed else value
    if isinstance(value, str):
        kinds = [kind for kind in members(annotation) or (annotation,) if torch_kind(kind)]
        if not kinds:
            return value
        import torch

        return torch.device(value) if torch_kind(kinds[0]) == DEVICE else getattr(torch, value)
    if isinstance(value, list | tuple):
        inner = typing.get_args(annotation)[:1] or (Any,)
        made = [_to_torch(item, inner[0]) for item in value]
        same = all(a is b for a, b in zip(made, value, strict=True))
        return value if same else type(value)(made)
    return value
