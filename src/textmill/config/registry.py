"""Registries, one per concept: a name in a file, a class in code.

Each room that has components declares their names in its ``registries.py``, with the modules that
register them: listing imports nothing, and a module is imported when its name is first asked for.
Users register theirs in the same line the library does:

    from textmill.training import registries

    @registries.optimizers.register("my_optimizer")
    class MyOptimizer(Component): ...

Installed packages name modules that register components in the entry points
``textmill.components``.
"""

import difflib
import importlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from textmill.errors import UserError


def suggest(name: str, known: Iterable[str], suits: Callable[[str], bool] | None = None) -> str:
    """'Did you mean ...? ' or nothing; of several near names the first that suits, if one does."""
    names = list(known)
    longer = sorted((word for word in names if len(name) > 2 and word.startswith(name)), key=len)
    found = longer or difflib.get_close_matches(name, names, n=3)
    best = next(filter(suits, found), None) if suits else None
    return f"Did you mean '{best or found[0]}'? " if found else ""


def suggest_path(path: Path, *, suffixes: Sequence[str] = (), folders: bool = False) -> str:
    """'Did you mean ...? ' with what lies beside a path that is missing, or nothing.

    Names are compared without their suffix, which all of a kind have; one of the same name and
    another suffix is the nearest.
    """
    try:
        beside = sorted(path.parent.iterdir(), key=lambda other: other.suffix == path.suffix)
    except OSError:  # there is no such folder, or it may not be listed
        return ""
    stems = {
        other.name if folders else other.stem: str(other)
        for other in beside
        if (other.is_dir() if folders else other.is_file())
        and (not suffixes or other.suffix in suffixes)
    }
    wanted = path.name if folders else path.stem
    near = [stem for stem in stems if stem == wanted] or difflib.get_close_matches(wanted, stems)
    return f"Did you mean '{stems[near[0]]}'? " if near else ""


class UnknownNameError(UserError):
    """A name that no component of the concept has."""


class Registry:
    """Names of one concept (``optimizer``, ``model``, ...).

    Args:
        concept: The field's word for it, in the singular; also the ingredient that it fills.
        modules: Modules of the library, each with the names that it registers.
        plural: What ``textmill list`` calls it; without one recipes cannot name what is in it.
        fills: The ingredients that it fills, where they are called otherwise.

    Example:
        >>> colours = Registry("colour")
        >>> @colours.register("red")
        ... class Red: ...
        >>> colours.get("red") is Red, colours.name_of(Red)
        (True, 'red')
        >>> colours.get("rd")  # doctest: +NORMALIZE_WHITESPACE
        Traceback (most recent call last):
        textmill.config.registry.UnknownNameError: Unknown colour 'rd'. Did you mean 'red'? Known:
        red.
    """

    def __init__(
        self,
        concept: str,
        modules: Mapping[str, Sequence[str]] | None = None,
        *,
        plural: str | None = None,
        fills: Sequence[str] = (),
    ) -> None:
        self.concept, self.fills = concept, (concept, *fills)
        self._modules: dict[str, str] = {}
        self._entries: dict[str, Any] = {}
        self._entry_points_read = False
        self.add(modules or {})
        if plural is not None:
            _BY_PLURAL[plural] = self

    def add(self, modules: Mapping[str, Sequence[str]]) -> None:
        """Declares what modules of a room above the concept's own register."""
        self._modules |= {name: module for module, names in modules.items() for name in names}

    def register(self, name: str) -> Callable[[Any], Any]:
        """A decorator that files an object under ``name``; a second of that name is refused."""

        def add(entry: Any) -> Any:
            taken = self._entries.get(name)
            module = getattr(entry, "__module__", None)
            homes = [
                (str(getattr(each, "__module__", None)), getattr(each, "__qualname__", None))
                for each in (taken, entry)
            ]
            # An edited script is executed again in this process.
            again = all(home.startswith("textmill_recipe_") for home, _ in homes)
            other = taken is not None and homes[0] != homes[1] and not again
            if other or self._modules.get(name, module) != module:
                owner = getattr(taken, "__module__", None) or self._modules[name]
                raise ValueError(f"The {self.concept} '{name}' is registered already, by {owner}.")
            self._entries[name] = entry
            return entry

        return add

    def get(self, name: str) -> Any:
        """The object of that name; an unknown name shows its neighbours."""
        if name not in self._entries and name in self._modules:
            importlib.import_module(self._modules[name])
        if name not in self._entries:
            self._read_entry_points()
        if name not in self._entries:
            known = self.names()
            listed = f"{suggest(name, known)}Known: {', '.join(known) or 'none'}."
            raise UnknownNameError(f"Unknown {self.concept} '{name}'. {listed}")
        return self._entries[name]

    def names(self) -> list[str]:
        """All names, sorted; nothing of the library is imported for it."""
        self._read_entry_points()
        return sorted({*self._modules, *self._entries})

    def loaded(self, name: str) -> Any | None:
        """The object of that name if its module was imported already, else None."""
        return self._entries.get(name)

    def module_of(self, name: str) -> str:
        """The module of the library that registers a name which is not loaded yet."""
        return self._modules[name]

    def name_of(self, entry: object) -> str | None:
        return next((name for name, known in self._entries.items() if known is entry), None)

    def files_any(self, kinds: Iterable[object]) -> bool:
        """Whether one of the classes, or a subclass of one, is filed here already."""
        wanted = tuple(kind for kind in kinds if isinstance(kind, type))
        return any(
            isinstance(entry, type) and issubclass(entry, wanted)
            for entry in self._entries.values()
        )

    def _read_entry_points(self) -> None:
        if not self._entry_points_read:
            self._entry_points_read = True
            from importlib.metadata import entry_points  # a seventh of import textmill.exported

            for point in entry_points(group="textmill.components"):
                point.load()


_BY_PLURAL: dict[str, Registry] = {}


def all_registries() -> dict[str, Registry]:
    """Every imported registry, by its plural; ``textmill.recipes.registries`` imports all."""
    return dict(_BY_PLURAL)


def for_ingredient(name: str) -> Registry | None:
    """The registry whose names can fill the ingredient ``name``."""
    return next((registry for registry in _BY_PLURAL.values() if name in registry.fills), None)


def find_name(entry: object) -> tuple[Registry, str] | None:
    """The registry and the name under which an object is filed."""
    for registry in _BY_PLURAL.values():
        if (name := registry.name_of(entry)) is not None:
            return registry, name
    return None
