"""What each registered name is, in a line: read from the sources, so that nothing is imported."""

import ast
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from weft.config.docs import first_line, without_markup
from weft.config.registry import Registry

__all__ = ["first_lines"]


def first_lines(registry: Registry[Any]) -> dict[str, str]:
    """The first line of the docstring of each entry, by name; empty where it has none.

    Example:
        >>> from weft.config import registries
        >>> first_lines(registries.schedules)["constant"]
        'The peak rate throughout.'
    """
    return {name: _line(registry, name) for name in registry.names()}


def _line(registry: Registry[Any], name: str) -> str:
    loaded = registry.loaded(name)
    if loaded is not None:
        return first_line(loaded)
    return _registered_in(registry.module_of(name)).get(name, "")


@cache
def _registered_in(module: str) -> dict[str, str]:
    """The first docstring lines of what a module registers by a decorator, by name."""
    spec = find_spec(module)
    if spec is None or spec.origin is None:
        return {}
    tree = ast.parse(Path(spec.origin).read_text(encoding="utf-8"))
    found: dict[str, str] = {}
    for node in ast.walk(tree):
        if isinstance(node, ast.ClassDef | ast.FunctionDef):
            doc = (ast.get_docstring(node) or "").partition("\n")[0]
            found |= dict.fromkeys(_names(node), without_markup(doc))
    return found


def _names(node: ast.ClassDef | ast.FunctionDef) -> Iterator[str]:
    """The names in the decorators ``@register_...("name")`` and ``@registry.register("name")``."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and decorator.args:
            called, name = decorator.func, decorator.args[0]
            verb = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if verb.startswith("register") and isinstance(name, ast.Constant):
                yield str(name.value)
