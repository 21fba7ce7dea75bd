"""Modules of a person's own: imported by name, so that what they register can be named."""

import contextlib
import sys
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from types import ModuleType

from textmill.config.code_names import MAIN, SCRIPT_MODULE, import_module
from textmill.config.recipe import experiments
from textmill.config.sources.own_files import file_of
from textmill.config.values.raw_values import Entries, Items, Scalar, is_null
from textmill.errors import CodeNotAllowedError, Place, UserError

_TYPED: list[str] = []
"""What ``--include`` names, while that command runs."""


def include(name: str, place: Place) -> None:
    """Imports a module that a person named, also from the folder where the command was typed."""
    if name.endswith(".py") or "/" in name:
        guess = name.removesuffix(".py").strip("./").replace("/", ".")
        raise UserError(f"{place}: wanted the name of a module, as {guess}, found '{name}'.")
    try:
        import_module(name)
    except Exception as error:
        raise UserError(
            f"{place}: '{name}' cannot be imported: {type(error).__name__}: {error}. A module is "
            "found in this folder, on PYTHONPATH, and where packages are installed."
        ) from error


@contextlib.contextmanager
def including(names: Sequence[str]) -> Iterator[None]:
    """Imports what ``--include`` names; every recipe of that command is one that needs them."""
    for name in names:
        include(name, Place(f"command line: --include {name}"))
    _TYPED[:] = names
    try:
        yield
    finally:
        _TYPED.clear()


def included() -> list[str]:
    """The modules that ``--include`` of this command names."""
    return list(_TYPED)


def is_includable(module: ModuleType, local: Collection[Path]) -> bool:
    """Whether only an import tells what a module registers; ``local`` comes with a script."""
    name = module.__name__
    known = name.partition(".")[0] == "textmill" or name == MAIN or name.startswith(SCRIPT_MODULE)
    return not known and file_of(module) not in local


def include_of_file(top: Entries, *, saved: bool, allow_code: bool) -> list[str]:
    """Imports the modules that ``include:`` of a YAML file names, and returns their names."""
    node, found = top.entries.get("include") or Items((), top.place), []
    for item in node.items if isinstance(node, Items) else () if is_null(node) else (node,):
        if not isinstance(item, Scalar):
            raise UserError(f"{node.place}: include: wanted the names of modules.")
        if saved and not allow_code and not _is_here(item.text):
            raise CodeNotAllowedError(
                f"{item.place}: this run was made with --include {item.text}, and code that a run "
                f"folder names is not executed. If you trust it, add --include {item.text} (in "
                "Python: import it), or --allow-code (allow_code=True)."
            )
        if not (saved and _is_here(item.text)):
            include(item.text, item.place)
        found.append(item.text)
    return found


def _is_here(name: str) -> bool:
    """Whether the module is imported, by an entry point of an installed package at the latest."""
    if name not in sys.modules:
        experiments.names()
    return name in sys.modules
