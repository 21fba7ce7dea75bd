"""What the source says of settings and components: ``Args:``, lines under fields, first lines."""

import ast
import inspect
import re
import textwrap
from collections.abc import Iterator
from functools import cache
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

from textmill.config.registry import Registry


def without_markup(text: str) -> str:
    """A docstring's text as a terminal shows it: roles and double backticks are left out."""
    return re.sub(r"``([^`]*)``", r"\1", re.sub(r":[a-z:]+:`~?([^`]+)`", r"\1", text))


def first_line(owner: Any) -> str:
    """The first sentence line of a docstring; a dataclass' made-up signature is none."""
    doc = vars(owner).get("__doc__") if isinstance(owner, type) else getattr(owner, "__doc__", None)
    if not doc or (isinstance(owner, type) and doc.startswith(f"{owner.__name__}(")):
        return ""
    return without_markup(str(doc).strip().splitlines()[0].strip())


def argument_docs(owner: Any) -> dict[str, str]:
    """The ``Args:`` section of a google docstring, by name; a class may have it on ``__init__``.

    >>> def f(x: int) -> int:
    ...     '''Doubles.
    ...
    ...     Args:
    ...         x: The number,
    ...             any number.
    ...     '''
    >>> argument_docs(f)
    {'x': 'The number, any number.'}
    """
    found = _args_section(inspect.getdoc(owner) or "")
    if isinstance(owner, type):
        constructor = getattr(owner, "__init__", None)
        found = {**_args_section(inspect.getdoc(constructor) or ""), **found}
    return found


def _args_section(doc: str) -> dict[str, str]:
    lines = iter(doc.splitlines())
    if not any(line.strip() in ("Args:", "Arguments:") for line in lines):
        return {}
    found: dict[str, str] = {}
    name, indent = "", -1
    for line in lines:
        text = line.strip()
        depth = len(line) - len(line.lstrip())
        if not text:
            continue
        if depth == 0:
            break
        indent = depth if indent < 0 else indent
        head, colon, rest = text.partition(":")
        if depth == indent and colon:
            name = head.split("(")[0].strip().lstrip("*")
            found[name] = rest.strip()
        elif name:
            found[name] = f"{found[name]} {text}".strip()
    return {name: without_markup(text) for name, text in found.items()}


def field_docs(kind: type[Any]) -> dict[str, str]:
    """The docstring line under each field of a class, inherited along its bases."""
    found: dict[str, str] = {}
    for base in reversed(kind.__mro__[:-1]):
        if base not in _OWN:
            _OWN[base] = _own_field_docs(base)
        found |= _OWN[base]
    return found


_OWN: WeakKeyDictionary[type[Any], dict[str, str]] = WeakKeyDictionary()
"""What was found: a run asks some 400 times, and Python needs 2 ms to find a class's source."""


def _own_field_docs(kind: type[Any]) -> dict[str, str]:
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(kind)))
    except (OSError, TypeError, SyntaxError, IndentationError):
        return {}
    body = tree.body[0].body if tree.body and isinstance(tree.body[0], ast.ClassDef) else []
    found = {}
    for field, doc in pairwise(body):
        if not (isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name)):
            continue
        text = isinstance(doc, ast.Expr) and isinstance(doc.value, ast.Constant) and doc.value.value
        if isinstance(text, str):
            found[field.target.id] = without_markup(" ".join(text.split()))
    return found


def first_lines(registry: Registry) -> dict[str, str]:
    """The first line of the docstring of each entry, by name; empty where it has none."""
    found = {}
    for name in registry.names():
        loaded = registry.loaded(name)
        if loaded is None:
            found[name] = _registered_in(registry.module_of(name)).get(name, "")
        else:
            found[name] = first_line(loaded)
    return found


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
            for name, variant in _names(node):
                found[name] = without_markup(doc)
                if variant:
                    found[f"{name}/local"] = f"{name} in seconds."
    return found


def _names(node: ast.ClassDef | ast.FunctionDef) -> Iterator[tuple[str, bool]]:
    """The names in ``register...("name")`` among the decorators; whether each has a local one."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and decorator.args:
            called, name = decorator.func, decorator.args[0]
            verb = called.attr if isinstance(called, ast.Attribute) else getattr(called, "id", "")
            if verb.startswith("register") and isinstance(name, ast.Constant):
                yield str(name.value), verb == "register_with_local"
