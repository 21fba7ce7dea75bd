"""Names of code in files: what is registered by its name, anything else as ``@module.name``.

A class or function of the recipe's own script is ``@name``. A file that a person names, and a word
of the command line, may have modules imported; a file of a run folder finds components in what is
imported already, and nothing else.
"""

import dataclasses
import importlib
import inspect
import sys
from collections.abc import Collection, Iterator, Mapping, Sequence, Set
from pathlib import Path
from types import ModuleType
from typing import Any

from textmill.config.registry import find_name
from textmill.errors import Place, UserError

SCRIPT_MODULE = "textmill_recipe_"
"""What the name of a script's module begins with."""

MAIN = "__main__"
"""The module of a program that was started, which nothing can import."""


class UnknownCodeError(UserError):
    """A name of code that leads to nothing here."""


def is_code(value: object) -> bool:
    """Whether a value is a class or a function, which files have by its name."""
    return isinstance(value, type) or inspect.isroutine(value)


def code_in(value: Any) -> Iterator[Any]:
    """The classes and functions that a value holds, at any depth."""
    if is_code(value):
        yield value
    elif dataclasses.is_dataclass(value):
        yield from (type(value), getattr(value, "owner", type(value)))
        for entry in dataclasses.fields(value):
            yield from code_in(getattr(value, entry.name, None))
    elif isinstance(value, Mapping):
        yield from (code for item in value.values() for code in code_in(item))
    elif isinstance(value, Sequence | Set) and not isinstance(value, str | bytes):
        yield from (code for item in value for code in code_in(item))


def code_name(value: Any) -> str:
    """How a file names a class or function."""
    module, name = getattr(value, "__module__", None), value.__qualname__
    if str(module).startswith(SCRIPT_MODULE):
        return f"@{name}"
    if module is None or not hasattr(sys.modules.get(module), name.partition(".")[0]):
        # Of a function that is not written in Python: where it is public.
        homes = sorted(sys.modules, key=lambda home: (home.count("."), len(home)))
        name = value.__name__
        spaces = ((home, getattr(sys.modules[home], "__dict__", {})) for home in homes)
        module = next((home for home, space in spaces if space.get(name) is value), module)
    return f"@{module}.{name}"


def type_word(owner: Any) -> str | None:
    """How a file names the component: as registered, or ``@module.name``.

    None for what the library has under no name: the place where it stands says what it is.
    """
    filed = find_name(owner)
    if filed is not None:
        return filed[1]
    own = isinstance(owner, type) and owner.__module__.partition(".")[0] != "textmill"
    return code_name(owner) if own else None


def is_component(value: object) -> bool:
    return isinstance(value, type) and getattr(getattr(value, "Config", None), "owner", 0) is value


class CodeNames:
    """Finds what ``@module.name`` names."""

    def __init__(self, script: ModuleType | None = None, closed: Collection[str] = ()) -> None:
        self.script, self.closed = script, closed

    def is_closed(self, place: Place | None) -> bool:
        """Whether what stands there may have nothing imported."""
        return place is not None and place.source in self.closed

    def find(self, word: str, place: Place | None) -> Any:
        """The class or function of that name."""
        first, *rest = word.removeprefix("@").split(".")
        if self.script is not None and first in vars(self.script):
            return _walked(word, vars(self.script)[first], rest)
        if not rest:
            of = "no module" if self.script is None else "nothing in the recipe's script"
            raise UnknownCodeError(f"'{word}' names {of}; wanted @module.name.")
        return _imported_already(word) if self.is_closed(place) else import_named(word)


def import_named(word: str) -> Any:
    """Imports what ``@module.name`` names, also from the folder where the command was typed."""
    parts = word.removeprefix("@").split(".")
    for count in range(len(parts) - 1, 0, -1):
        name = ".".join(parts[:count])
        try:
            module = import_module(name)
        except Exception as error:
            absent = isinstance(error, ModuleNotFoundError) and name.startswith(str(error.name))
            if absent and count > 1:
                continue  # a class in a class
            said = f"{type(error).__name__}: {error}"
            raise UnknownCodeError(f"'{word}' cannot be imported: {said}.") from error
        return _walked(word, module, parts[count:])
    raise UnknownCodeError(f"'{word}' names no module; wanted @module.name.")


def import_module(name: str) -> ModuleType:
    """Imports a module; the working folder is first on ``sys.path``, and last from then on."""
    here = str(Path.cwd())
    known = here in sys.path
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        return importlib.import_module(name)
    finally:
        sys.path.remove(here)
        if not known:
            sys.path.append(here)  # functions may import their neighbours when they are called


def _walked(word: str, value: Any, names: list[str]) -> Any:
    for name in names:
        if not hasattr(value, name):
            where = getattr(value, "__name__", type(value).__name__)
            if value is sys.modules.get(MAIN):
                where = (
                    "it was defined in the program that was started, which alone can find it "
                    "again. Put it into a module that can be imported; here the program"
                )
            raise UnknownCodeError(f"'{word}' cannot be imported: {where} has no '{name}'.")
        value = getattr(value, name)
    return value


def _imported_already(word: str) -> Any:
    """The component of that name in the modules there are; nothing is executed to look for it."""
    parts = word.removeprefix("@").split(".")
    for count in range(len(parts) - 1, 0, -1):
        value: Any = sys.modules.get(".".join(parts[:count]))
        for name in parts[count:]:
            value = vars(value).get(name) if isinstance(value, type | ModuleType) else None
        if is_component(value):
            return value
    raise UnknownCodeError(
        f"'{word}' is not imported here, and what a run folder names is not imported unasked: add "
        f"--include {'.'.join(parts[:-1])}, or --allow-code if you trust it (in Python: import it, "
        "or allow_code=True)."
    )
