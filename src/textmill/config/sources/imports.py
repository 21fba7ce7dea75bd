"""The modules of a script's own folder: found in what it imports, and in what those import."""

import ast
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

from textmill.errors import Place, UserError

_TEXTMILL = Path(__file__).resolve().parents[2]
_STANDARD = Path(sysconfig.get_paths()["stdlib"]).resolve()
_INSTALLED = ("site-packages", "dist-packages")


def local_files(tree: ast.Module, folder: Path) -> list[Path]:
    """The files below the folder that a script imports, at its top or inside a function.

    What is imported is read from the source, not from what happens to be in ``sys.modules``: a
    module that the process had already is found too, one of a library never, and the same script
    has the same modules in every process. An import by a name that is computed is not seen.

    Args:
        tree: The script.
        folder: The script's folder, resolved.

    Raises:
        UserError: One of them is not Python.
    """
    found: dict[Path, None] = {}
    waiting = [(tree, "")]
    while waiting:
        module, package = waiting.pop()
        for name in imported_names(module, package):
            for file, inside in _files(name, folder):
                if file not in found:
                    found[file] = None
                    waiting.append((parsed(file), inside))
    return sorted(found)


def refuse_others(tree: ast.Module, folder: Path, script: Path) -> None:
    """Refuses a script one of whose modules this process has by the same name from elsewhere.

    Python would take the one in memory. That is right only if both files say the same.

    Raises:
        UserError: They do not.
    """
    try:
        files = local_files(tree, folder)
    except UserError:
        return  # not Python: told when it is imported
    for file in files:
        name = _dotted(file, folder)
        module = sys.modules.get(name)
        other = None if module is None else file_of(module)
        if other is not None and other != file and other.read_bytes() != file.read_bytes():
            raise UserError(
                f"{script} imports {name}, and this process has imported another module of that "
                f"name: {other} is not as {file}. Use the script in a process of its own, or give "
                "one of the modules another name."
            )


def own_files(name: str, folder: Path) -> Iterator[tuple[str, Path, str]]:
    """The files of a person's own that importing a dotted name executes, wherever they lie.

    Args:
        name: What is imported; of what this process has not imported, only the folder is searched.
        folder: The folder of the importing module's outermost package.

    Returns:
        For each its dotted name, its file, and the package it is in.
    """
    parts = name.split(".")
    below = dict(_files(name, folder))
    for count in range(1, len(parts) + 1):
        dotted = ".".join(parts[:count])
        module = sys.modules.get(dotted)
        file = None if module is None else file_of(module)
        if file is not None and is_own_file(file):
            below.pop(file, None)
            yield dotted, file, str(getattr(module, "__package__", "") or "")
    for file, inside in below.items():
        yield _dotted(file, folder), file, inside


def _dotted(file: Path, folder: Path) -> str:
    """The name by which a file below a folder is imported."""
    place = file.parent if file.name == "__init__.py" else file.with_suffix("")
    return ".".join(place.relative_to(folder).parts)


def is_own_file(file: Path) -> bool:
    """Whether a Python file belongs to nothing that is installed."""
    resolved = file.resolve()
    return (
        resolved.suffix == ".py"
        and not any(resolved.is_relative_to(place) for place in (_TEXTMILL, _STANDARD))
        and not any(part in _INSTALLED for part in resolved.parts)
    )


def is_local(file: Path, folder: Path) -> bool:
    """Whether a Python file lies below the folder and belongs to nothing that is installed."""
    return file.resolve().is_relative_to(folder) and is_own_file(file)


def file_of(module: ModuleType) -> Path | None:
    """The file of an imported module, resolved."""
    file = getattr(module, "__file__", None)
    return Path(file).resolve() if isinstance(file, str) else None


def imported_names(tree: ast.AST, package: str) -> Iterator[str]:
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


def _files(name: str, folder: Path) -> Iterator[tuple[Path, str]]:
    """The files that importing a dotted name executes, each with the package it is in."""
    parts = name.split(".")
    if not all(part.isidentifier() for part in parts) or _is_elsewhere(parts[0], folder):
        return
    for count in range(1, len(parts) + 1):
        place, dotted = folder.joinpath(*parts[:count]), ".".join(parts[:count])
        package, module = place / "__init__.py", place.with_name(f"{place.name}.py")
        if package.is_file():
            file, inside = package, dotted
        else:
            file, inside = module, ".".join(parts[: count - 1])
        if file.is_file() and is_local(file, folder):
            yield file.resolve(), inside
        elif not place.is_dir():  # a folder without __init__.py is a package too
            return


def _is_elsewhere(name: str, folder: Path) -> bool:
    """Whether the name is that of a library, which Python would not take from the folder."""
    module = sys.modules.get(name)
    if module is None:
        return name in sys.stdlib_module_names
    file = file_of(module)
    return file is not None and not file.is_relative_to(folder) and not is_own_file(file)


def parsed(file: Path) -> ast.Module:
    """The file's syntax tree.

    Raises:
        UserError: It is not Python.
    """
    try:
        return ast.parse(file.read_bytes())
    except (OSError, SyntaxError, ValueError) as error:
        place = Place(str(file), getattr(error, "lineno", None))
        raise UserError(f"{place}: not Python: {getattr(error, 'msg', error)}.") from error
