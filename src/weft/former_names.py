"""Names that modules, classes and functions had before: who imports or wrote down one is served.

``former_names.txt`` has a line for each: the former dotted name and the present one. Keys of runs
are made of the first name of a component, so that a run is found again wherever its class went.
"""

import importlib
from functools import cache
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

from typing_extensions import override


@cache
def _present() -> dict[str, str]:
    """Former names with their present ones, as they are in the file."""
    text = Path(__file__).with_suffix(".txt").read_text(encoding="utf-8")
    return dict(line.split() for line in text.splitlines())


@cache
def _former() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for old, new in _present().items():
        found.setdefault(new, []).append(old)
    return found


def first_name(name: str) -> str:
    """The first name of a class or function of weft; a name that was never another is given back.

    Example:
        >>> first_name("weft.text.tokenizers.word_tokenizer.FittedWords")
        'weft.text.words.FittedWords'
        >>> first_name("my_module.MyModel")
        'my_module.MyModel'
    """
    former = _former()
    if name in former:
        return former[name][0]
    module, _, last = name.rpartition(".")
    homes = former.get(module, [])
    return f"{homes[0]}.{last}" if len(homes) == 1 else name


def spec_of(name: str) -> ModuleSpec | None:
    """How the module of a former name is imported; None where it never was one."""
    return ModuleSpec(name, _FormerModule()) if name in _present() else None


class _FormerModule(Loader):
    """Gives what is asked of a former module from where it is now."""

    @override
    def create_module(self, spec: ModuleSpec) -> ModuleType:
        module = ModuleType(spec.name)
        vars(module)["__getattr__"] = lambda name: _now(spec.name, name)
        return module

    @override
    def exec_module(self, module: ModuleType) -> None:
        """Nothing is executed: what the module had is imported when it is asked for."""


def _now(module: str, name: str) -> Any:
    where, _, other = _present().get(f"{module}.{name}", "").rpartition(".")
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(importlib.import_module(where or _present()[module]), other or name)
