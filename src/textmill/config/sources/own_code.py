"""The source of what is a person's own, from classes and functions to all that they use.

Of the file that defines a part: the top-level statements it reaches. Of the modules that those
import: all, as what such a module does is not told by the names taken from it. What is installed,
Python's own and the library's is told by its version, which ``run.json`` has.
"""

import ast
import contextlib
import dataclasses
import hashlib
import inspect
import linecache
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any

from textmill.config.code_names import MAIN, SCRIPT_MODULE, is_code
from textmill.config.sources.imports import file_of, imported_names, is_own_file, own_files, parsed
from textmill.errors import UserError


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


def own_code(
    values: Iterable[Any],
    *,
    known: Collection[Path] = (),
    imported_by: Iterable[ast.AST] = (),
    folder: Path = Path(),
) -> dict[str, str]:
    """Normalized source of the classes and functions and of what they use, by names.

    Args:
        values: Classes and functions; those that are not a person's own add nothing.
        known: Files whose code the caller has already.
        imported_by: Syntax trees, whose imports are added too.
        folder: The folder of these.

    Raises:
        UserError: The source of one of them cannot be read: a run with it could not be told from
            a run with another.
    """
    reached = _Reached(known)
    for value in values:
        reached.add(value)
    for tree in imported_by:
        reached.add_imports(tree, folder, "")
    return reached.found


def own_parts(values: Iterable[Any]) -> dict[str, str]:
    """The sha256 of each class and function of a person's own and of all it uses, by its name.

    It is of the syntax, which no comment, no layout, no name of a module and no version of Python
    changes. A class of a script, or of the program that was started, has its name alone.

    Raises:
        UserError: The source of one of them cannot be read.
    """
    parts: dict[str, list[Any]] = {}
    for value in values:
        code = inspect.unwrap(getattr(value, "__func__", value))
        if _is_own(code):
            home = code.__module__
            home = "" if home == MAIN or home.startswith(SCRIPT_MODULE) else f"{home}."
            name = f"{home}{code.__qualname__.partition('.')[0]}"
            parts.setdefault(name, []).append(code)
    texts = {name: sorted(map(_syntax, own_code(codes).values())) for name, codes in parts.items()}
    return {
        name: hashlib.sha256("\0".join(each).encode("utf-8", "surrogatepass")).hexdigest()
        for name, each in texts.items()
    }


def _syntax(text: str) -> str:
    """The syntax tree as text, the same for each version of Python; of what is none, the text."""

    def written(node: Any) -> str:
        if isinstance(node, ast.AST):
            said = [f"{n}={written(v)}" for n, v in ast.iter_fields(node) if v not in (None, [])]
            return f"{type(node).__name__}({', '.join(said)})"
        return f"[{', '.join(map(written, node))}]" if isinstance(node, list) else repr(node)

    try:
        return written(ast.parse(text))
    except (SyntaxError, ValueError):  # of a constant: what it shows
        return text


@dataclass(frozen=True)
class _Unit:
    """The text that defines a part: a module's file, or a cell of a notebook."""

    label: str
    bound: Mapping[str, list[ast.stmt]]
    names: Mapping[str, Any]
    """What the module has, also from other cells."""
    folder: Path = Path()
    package: str = ""


@dataclass
class _Reached:
    known: Collection[Path]
    found: dict[str, str] = field(default_factory=dict)
    seen: set[int] = field(default_factory=set)

    def add(self, value: Any) -> None:
        """Adds a class or function, and the classes it inherits from."""
        value = inspect.unwrap(getattr(value, "__func__", value))
        if id(value) in self.seen or not _is_own(value):
            return
        self.seen.add(id(value))
        for base in value.__mro__[1:] if isinstance(value, type) else ():
            self.add(base)
        module = sys.modules.get(value.__module__)
        if module is None or file_of(module) not in self.known:
            name = value.__qualname__.partition(".")[0]
            self.follow(_unit_of(value, module, name), name)

    def follow(self, unit: _Unit, name: str) -> None:
        """Adds the statements of the unit that bind a name, and what they use."""
        waiting = [name]
        while waiting:
            name = waiting.pop()
            label = f"{unit.label}.{name}"
            if label in self.found:
                continue
            if name in unit.bound:
                self.found[label] = normalized(unit.bound[name])
                waiting += names_in(unit.bound[name])
                for statement in unit.bound[name]:
                    self.add_imports(statement, unit.folder, unit.package)
            elif name in unit.names:
                self.add_value(label, unit.names[name])

    def add_value(self, label: str, value: Any) -> None:
        """Adds what a name stands for that another cell, or an import of all names, has bound."""
        if is_code(value):
            self.add(value)
        elif isinstance(value, ModuleType):
            self.add_imports(ast.parse(f"import {value.__name__}"), Path(), "")
        else:
            self.found[label] = _written(value)
            for code in code_in(value):
                self.add(code)

    def add_imports(self, tree: ast.AST, folder: Path, package: str) -> None:
        """Adds the modules of a person's own that are imported somewhere in the tree."""
        waiting = [(tree, folder, package)]
        while waiting:
            tree, folder, package = waiting.pop()
            for name in imported_names(tree, package):
                for dotted, file, inside in own_files(name, folder):
                    label = f"module {dotted}"
                    if file not in self.known and label not in self.found:
                        module = parsed(file)
                        self.found[label] = normalized([module])
                        waiting.append((module, _outermost(file, inside), inside))


def _written(value: Any) -> str:
    """A constant as text; of an object its class, as what it shows may be another each time."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = {entry.name: getattr(value, entry.name) for entry in dataclasses.fields(value)}
        return f"{type(value).__qualname__} {_written(fields)}"
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{_written(k)}: {_written(v)}' for k, v in value.items())}}}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_written, value))}]"
    if isinstance(value, Set):
        return f"{{{', '.join(sorted(map(_written, value)))}}}"
    plain = isinstance(value, bool | int | float | str | bytes | None)
    return repr(value) if plain else getattr(value, "__qualname__", type(value).__qualname__)


def _is_own(value: Any) -> bool:
    name = getattr(value, "__module__", None)
    if name is None or inspect.isbuiltin(value):
        return False
    if name.partition(".")[0] in ("textmill", *sys.stdlib_module_names):
        return False
    module = sys.modules.get(name)
    file = getattr(module, "__file__", None)
    return file is None or is_own_file(Path(file))


def _outermost(file: Path, package: str) -> Path:
    """The folder of the outermost package that a module is in."""
    depth = package.count(".") + 1 if package else 0
    return file.parents[depth] if depth < len(file.parents) else file.parent


def _unit_of(value: Any, module: ModuleType | None, name: str) -> _Unit:
    for unit in (_unit_of_module(module), *_units_of_cells(value)):
        if unit is not None and name in unit.bound:
            return unit
    raise UserError(
        f"the source of {value.__module__}.{value.__qualname__} cannot be read, so a run with it "
        "could not be told from a run with another. Write it into a file and import it."
    )


def _unit_of_module(module: ModuleType | None) -> _Unit | None:
    file = None if module is None else file_of(module)
    if module is None or file is None or file.suffix != ".py":
        return None
    package = module.__package__ or ""
    label = "" if module.__name__.startswith(SCRIPT_MODULE) else module.__name__
    bound = top_level(parsed(file))
    return _Unit(label, bound, vars(module), _outermost(file, package), package)


def _units_of_cells(value: Any) -> Iterator[_Unit]:
    """The texts from which a function was made, or the methods of a class.

    A Config seldom has a method that is written; its component has. What a decorator adds, as
    dataclass does, has the names of another module.
    """
    owner = getattr(value, "owner", None)
    for found in (value, *vars(value).values(), *(vars(owner).values() if owner else ())):
        function = inspect.unwrap(getattr(found, "__func__", found))
        code = getattr(function, "__code__", None)
        if code is not None and function.__globals__.get("__name__") == value.__module__:
            with contextlib.suppress(SyntaxError):
                tree = ast.parse("".join(linecache.getlines(code.co_filename)))
                yield _Unit(value.__module__, top_level(tree), function.__globals__, Path.cwd())


def top_level(tree: ast.Module) -> dict[str, list[ast.stmt]]:
    """The statements that bind each top-level name, imports included; a name may be bound twice."""
    found: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _binds(statement):
            found.setdefault(name, []).append(statement)
    return found


def _binds(statement: ast.stmt) -> list[str]:
    if isinstance(statement, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return [statement.name]
    if isinstance(statement, ast.Import | ast.ImportFrom):
        return [(alias.asname or alias.name).partition(".")[0] for alias in statement.names]
    stored = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
    return sorted({name.id for name in stored if isinstance(name.ctx, ast.Store)})


def names_in(statements: Iterable[ast.stmt]) -> list[str]:
    """The names that the statements use, also in annotations that are written as text."""
    found: list[str] = []
    for statement in statements:
        found += sorted({leaf.id for leaf in ast.walk(statement) if isinstance(leaf, ast.Name)})
        parts = ("annotation", "returns")
        noted = (getattr(node, part, None) for node in ast.walk(statement) for part in parts)
        leaves = (leaf for note in noted if note is not None for leaf in ast.walk(note))
        texts = (leaf.value for leaf in leaves if isinstance(leaf, ast.Constant))
        found += sorted({text.partition(".")[0] for text in texts if isinstance(text, str)})
    return found


def normalized(nodes: Iterable[ast.AST]) -> str:
    """The trees without docstrings, comments and positions."""
    texts = []
    for copied in (ast.parse(ast.unparse(node)) for node in nodes):
        for inner in ast.walk(copied):
            body = getattr(inner, "body", None)
            if isinstance(body, list):
                kept = [statement for statement in body if not _is_text(statement)]
                inner.body = kept or [ast.Pass()]  # type: ignore[attr-defined]
        texts.append(ast.unparse(copied))
    return "\n".join(texts)


def _is_text(statement: Any) -> bool:
    """A statement that is nothing but text: a docstring, or the line under a field."""
    constant = isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant)
    return constant and isinstance(statement.value.value, str)
