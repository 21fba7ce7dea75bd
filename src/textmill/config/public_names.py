"""Public names of a package, each imported when it is first used, so that none waits for torch."""

import ast
import importlib
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any

from textmill.config.foreign_names import setting_here
from textmill.errors import missing_training_extra


@cache
def public_names(package: str) -> dict[str, str]:
    """The names that a package imports for type checkers alone, sorted, each with its module."""
    tree = ast.parse(Path(str(importlib.import_module(package).__file__)).read_text("utf-8"))
    found = {
        alias.name: str(line.module)
        for block in tree.body
        if isinstance(block, ast.If) and ast.unparse(block.test) == "TYPE_CHECKING"
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    return dict(sorted(found.items()))


def public_name(package: str, name: str) -> Any:
    """What a package has under a public name, which is imported now."""
    known = public_names(package)
    if name in known:
        try:
            return getattr(importlib.import_module(known[name]), name)
        except ModuleNotFoundError as error:
            raise missing_training_extra(error, f"{package}.{name}") or error from error
    if package == "textmill" and (here := setting_here(name)):
        # Of an AttributeError an import would not show the words.
        raise ImportError(f"there is no textmill.{name}. {here.strip()}", name=name)
    has = ", ".join(known)
    raise AttributeError(f"module '{package}' has no attribute '{name}'; it has: {has}")


def on_first_use(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """The ``__getattr__`` and the ``__dir__`` of a package."""
    return partial(public_name, package), lambda: list(public_names(package))
