"""Files of a person's own: those that define the parts of a recipe, and all that these import."""

import ast
import hashlib
import importlib.util
import inspect
import linecache
import os
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType, ModuleType
from typing import Any

from textmill.config.code_names import SCRIPT_MODULE
from textmill.errors import Place, UserError

_TEXTMILL = Path(__file__).resolve().parents[2]
_STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()
_INSTALLED = ("site-packages", "dist-packages")
_NOT_OWN = sys.stdlib_module_names | {"textmill"}


@dataclass(frozen=True)
class OwnFile:
    """A file with code of a person's own, or a cell of a notebook."""

    name: str
    """The dotted name of the module; empty for the recipe's script."""
    path: Path | None
    """Where it is; None for a cell."""
    data: bytes

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()

    @property
    def shown(self) -> str:
        if self.path is None:
            return f"the cell that defines {self.name}"
        below = self.path.is_relative_to(Path.cwd())
        return os.path.relpath(self.path) if below else str(self.path)


def own_files(
    parts: Iterable[Any] = (), *, script: Mapping[Path, bytes] = MappingProxyType({})
) -> list[OwnFile]:
    """The script, the modules that define the parts, and all own modules that these import.

    Imports are read from the source, at its top or inside a function, so that the same code has the
    same files in every process; an import by a name that is computed is not seen. What is installed
    is not a person's own. Of a class or function of a notebook it is the cell that defines it.
    """
    found: dict[Path | str, OwnFile] = {}
    waiting = [("", path, "") for path in [*script][:1]]
    trees: list[tuple[ast.AST, Path, str]] = []
    for part in _with_bases(parts):
        module = sys.modules.get(part.__module__)
        file = None if module is None else file_of(module)
        if module is not None and file is not None:
            name = file.stem if part.__module__.startswith(SCRIPT_MODULE) else module.__name__
            waiting.append((name, file, str(module.__package__ or "")))
        else:
            name = f"{part.__module__}.{part.__qualname__}"
            found[name] = OwnFile(name, None, _cell(part).encode("utf-8", "surrogatepass"))
            with suppress(SyntaxError):  # of a notebook's own commands
                trees.append((ast.parse(found[name].data), Path.cwd(), ""))
    while waiting or trees:
        for tree, folder, package in trees:
            waiting += (each for name in _imported(tree, package) for each in _files(name, folder))
        trees.clear()
        for name, file, package in waiting:
            if file not in found:
                try:
                    data = script[file] if file in script else file.read_bytes()
                except OSError as error:
                    raise UserError(f"{file}: cannot be read: {error.strerror}.") from error
                found[file] = OwnFile(name, file, data)
                try:
                    trees.append((ast.parse(found[file].data), _outermost(file, package), package))
                except (SyntaxError, ValueError) as error:
                    if file in [*script][:1]:  # the import of another has failed in a `try`
                        place = Place(str(file), getattr(error, "lineno", None))
                        said = getattr(error, "msg", error)
                        raise UserError(f"{place}: not Python: {said}.") from error
        waiting.clear()
    return [*found.values()]


def refuse_others(path: Path, data: bytes) -> None:
    """Refuses a script one of whose modules this process has by the same name from elsewhere.

    Python would take the one in memory. That is right only if both files say the same.
    """
    try:
        files = own_files(script={path.resolve(): data})
    except UserError:
        return  # not Python: told when it is imported
    local = files_below(path.resolve().parent, files[1:])
    for file in (file for file in files if file.path in local):
        module = sys.modules.get(file.name)
        other = None if module is None else file_of(module)
        if other is not None and other != file.path and other.read_bytes() != file.data:
            raise UserError(
                f"{path} imports {file.name}, and this process has imported another module of that "
                f"name: {other} is not as {file.path}. Use the script in a process of its own, or "
                "give one of the modules another name."
            )


def files_below(folder: Path, files: Iterable[OwnFile]) -> dict[Path, bytes]:
    """Those of the files that lie below a folder, sorted by their paths."""
    found = {f.path: f.data for f in files if f.path is not None and is_local(f.path, folder)}
    return dict(sorted(found.items()))


def is_local(file: Path, folder: Path) -> bool:
    """Whether a Python file lies below the folder and belongs to nothing that is installed."""
    return file.resolve().is_relative_to(folder) and _is_own_file(file.absolute())


def file_of(module: ModuleType) -> Path | None:
    """The file of an imported module, resolved."""
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def _with_bases(parts: Iterable[Any]) -> Iterator[Any]:
    """The classes and functions that are a person's own, with the classes they inherit from."""
    seen: set[int] = set()
    for part in parts:
        code = inspect.unwrap(getattr(part, "__func__", part))
        for each in code.__mro__ if isinstance(code, type) else (code,):
            if id(each) not in seen and _is_own(each):
                seen.add(id(each))
                yield each


def _is_own(value: Any) -> bool:
    name = getattr(value, "__module__", None)
    if name is None or inspect.isbuiltin(value) or name.partition(".")[0] in _NOT_OWN:
        return False
    file = getattr(sys.modules.get(name), "__file__", None)
    return file is None or _is_own_file(Path(file).absolute())


@lru_cache(maxsize=4096)
def _is_own_file(file: Path) -> bool:
    resolved = file.resolve()
    return (
        resolved.suffix == ".py"
        and not any(resolved.is_relative_to(place) for place in (_TEXTMILL, _STANDARD))
        and not any(part in _INSTALLED for part in resolved.parts)
    )


def _imported(tree: ast.AST, package: str) -> Iterator[str]:
    """The dotted names that a module imports; of ``from a import b`` also ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            parts = package.split(".")[: len(package.split(".")) - node.level + 1]
            above = parts if node.level else []
            base = ".".join([*above, node.module] if node.module else above)
            if base:
                yield base
                yield from (f"{base}.{alias.name}" for alias in node.names)
        elif isinstance(node, ast.Call) and node.args:
            called = getattr(node.func, "attr", getattr(node.func, "id", ""))
            name = getattr(node.args[0], "value", None)
            if called in ("import_module", "__import__") and isinstance(name, str):
                yield name


def _files(name: str, folder: Path) -> Iterator[tuple[str, Path, str]]:
    """The own files that importing a dotted name executes: name, file, and the package it is in."""
    parts = name.split(".")
    if not all(map(str.isidentifier, parts)) or parts[0] in _NOT_OWN:
        return
    below = [] if _is_elsewhere(parts[0], folder) else [*_files_in(parts, folder)]
    yield from below
    for root in [] if below else _roots(parts[0]):
        yield from _files_in(parts, root)


def _files_in(parts: list[str], folder: Path) -> Iterator[tuple[str, Path, str]]:
    for count in range(1, len(parts) + 1):
        place, dotted = folder.joinpath(*parts[:count]), ".".join(parts[:count])
        package, module = place / "__init__.py", place.with_name(f"{place.name}.py")
        is_package = package.is_file()
        file = package if is_package else module
        if file.is_file() and _is_own_file(file.absolute()):
            yield dotted, file.resolve(), dotted if is_package else dotted.rpartition(".")[0]
        elif not place.is_dir():  # a folder without __init__.py is a package too
            return


def _roots(name: str) -> list[Path]:
    """The folders in which Python finds a module or package; nothing is imported."""
    try:
        spec = importlib.util.find_spec(name)
    except (ImportError, ValueError, AttributeError):
        return []
    if spec is None:
        return []
    places = [*(spec.submodule_search_locations or ())] or [str(spec.origin)]
    return [Path(place).parent for place in places]


def _is_elsewhere(name: str, folder: Path) -> bool:
    """Whether the name is that of a library, which Python would not take from the folder."""
    module = sys.modules.get(name)
    file = None if module is None else file_of(module)
    return file is not None and not file.is_relative_to(folder) and not _is_own_file(file)


def _outermost(file: Path, package: str) -> Path:
    depth = package.count(".") + 1 if package else 0
    return file.parents[depth] if depth < len(file.parents) else file.parent


def _cell(part: Any) -> str:
    """The text of the cells from which a function was made, or the methods of a class.

    A Config seldom has a method that is written; its component has. What a decorator adds, as
    dataclass does, has the names of another module.
    """
    owner = getattr(part, "owner", None)
    texts = set()
    for member in (part, *vars(part).values(), *(vars(owner).values() if owner else ())):
        function = inspect.unwrap(getattr(member, "__func__", member))
        code = getattr(function, "__code__", None)
        if code is not None and function.__globals__.get("__name__") == part.__module__:
            texts.add("".join(linecache.getlines(code.co_filename)))
    if not any(texts):
        raise UserError(
            f"the source of {part.__module__}.{part.__qualname__} cannot be read, so a run with it "
            "could not be told from a run with another. Write it into a file and import it."
        )
    return "\n".join(sorted(texts))
