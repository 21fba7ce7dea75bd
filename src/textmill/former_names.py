"""Names that modules, classes and functions had before: who imports or wrote down one is served.

``former_names.txt`` has a line for each: the former dotted name and the present one. Keys of runs
are made of the first name of a component, so that a run is found again wherever its class went.
Every command reads it: no pathlib and no importlib.abc here, which took ``textmill.cli.main`` 17
ms.
"""

import importlib
import os.path
from collections.abc import Callable, Sequence
from functools import cache, partial
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from types import ModuleType
from typing import Any

from typing_extensions import override


@cache
def _present() -> dict[str, str]:
    """Former names with their present ones, as they are in the file."""
    with open(os.path.splitext(__file__)[0] + ".txt", encoding="utf-8") as lines:
        return dict(line.split() for line in lines)


@cache
def _former() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for old, new in _present().items():
        found.setdefault(new, []).append(old)
    return found


def first_name(name: str) -> str:
    """The first name of a class or function of textmill; any other name is given back.

    Example:
        >>> first_name("textmill.text.tokenizers.word_tokenizer.FittedWords")
        'textmill.text.words.FittedWords'
        >>> first_name("my_module.MyModel")
        'my_module.MyModel'
    """
    former = _former()
    if name in former:
        return former[name][0]
    module, _, last = name.rpartition(".")
    homes = former.get(module, [])
    return f"{homes[0]}.{last}" if len(homes) == 1 else name


@cache
def _modules() -> set[str]:
    """All that is a former module, or a module that had a former name in it."""
    return {module for old in _present() for module in (old, old.rpartition(".")[0])}


def spec_of(name: str, path: Sequence[str] | None) -> ModuleSpec | None:
    """How a module is imported that is, or has in it, a former name; None of any other."""
    if name not in _modules():
        return None
    found = PathFinder.find_spec(name, path)
    if found is None:
        if name not in _present():
            return None
        home = os.path.join(os.path.dirname(__file__), *_present()[name].split(".")[1:])
        file = f"{home}.py" if os.path.isfile(f"{home}.py") else f"{home}/__init__.py"
        found = ModuleSpec(name, _FormerModule(name, file), origin=file)
        found.has_location = True
        return found
    if isinstance(found.loader, SourceFileLoader):
        found.loader = _PresentModule(found.loader.name, found.loader.path)
    return found


class _PresentModule(SourceFileLoader):
    """Executes a module that is still there, and gives the names that it had beside its own."""

    @override
    def exec_module(self, module: ModuleType) -> None:
        super().exec_module(module)
        own = vars(module).get("__getattr__")
        vars(module)["__getattr__"] = partial(_former_attribute, module.__name__, own=own)


class _FormerModule(SourceFileLoader):
    """Gives what is asked of a former module from where it is now."""

    @override
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        name = spec.name
        module = ModuleType(name, f"The former name of ``{_present()[name]}``.")
        vars(module)["__getattr__"] = partial(_now, name)
        vars(module)["__dir__"] = lambda: sorted(_names(name))
        return module

    @override
    def exec_module(self, module: ModuleType) -> None:
        """Nothing is executed: what the module had is imported when it is asked for."""


def _now(module: str, name: str) -> Any:
    if name == "__all__":
        return _names(module)
    if name.startswith("__"):
        raise AttributeError(name)
    if f"{module}.{name}" in _present():
        return _former_attribute(module, name)
    return getattr(importlib.import_module(_present()[module]), name)


def _former_attribute(module: str, name: str, own: Callable[[str], Any] | None = None) -> Any:
    """What a module had by this name; a former module in a package is imported, not looked up.

    Args:
        module: The module.
        name: What is asked for.
        own: The module's own ``__getattr__``, which comes first.
    """
    if own is not None:
        try:
            return own(name)
        except AttributeError:
            if f"{module}.{name}" not in _present():
                raise
    former = f"{module}.{name}"
    where, _, present = _present().get(former, "").rpartition(".")
    if not where or former == f"{where}.{present}":  # still there, and not imported yet
        raise AttributeError(f"module '{module}' has no attribute '{name}'")
    value = getattr(importlib.import_module(where), present)
    if isinstance(value, ModuleType):
        return importlib.import_module(f"{module}.{name}")
    return value


def _names(module: str) -> list[str]:
    """The public names of a former module: those that it has now, and those that it had."""
    present = importlib.import_module(_present()[module])
    public = getattr(present, "__all__", None) or [n for n in vars(present) if n[:1] != "_"]
    former = [old.rpartition(".")[2] for old in _present() if old.rpartition(".")[0] == module]
    return list(dict.fromkeys([*public, *former]))
