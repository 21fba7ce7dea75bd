"""Scripts: a file is executed as a module of its own; its ingredients are found in its source."""

import ast
import hashlib
import importlib.util
import inspect
import io
import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from types import ModuleType
from typing import Any, ClassVar

from textmill.config.code_names import SCRIPT_MODULE
from textmill.config.ingredient import (
    REPLACEABLE,
    STANDARD,
    WITH_DEFAULT,
    Ingredient,
    IngredientTable,
    is_ingredient,
)
from textmill.config.recipe import Recipe, experiments
from textmill.config.sources.own_files import files_below, is_local, own_files, refuse_others
from textmill.config.validators import read_once
from textmill.config.values.yaml_files import read_source
from textmill.errors import Place, SeveralError, UserError, worded


def load_script(path: Path) -> IngredientTable:
    """Executes a script and lists its ingredients."""
    data = read_source(path)
    try:  # with the line ends of any system, as Python reads them
        source = io.StringIO(data.decode("utf-8"), newline=None).read()
    except UnicodeDecodeError as error:
        raise UserError(f"{path}: not UTF-8 text (byte {error.start}).") from error
    try:
        code = compile(source, str(path), "exec", dont_inherit=True)
        tree = ast.parse(source)
    except (SyntaxError, ValueError) as error:
        line = getattr(error, "lineno", None)
        place = Place(str(path), line, getattr(error, "offset", None) if line else None)
        raise UserError(f"{place}: not Python: {getattr(error, 'msg', error)}.") from error
    module = _new_module(path, source)
    folder = path.resolve().parent
    with _imports_from(folder):
        refuse_others(path, data)
        try:
            exec(code, module.__dict__)  # noqa: S102 - running the user's own script is the point
        except (Exception, SystemExit) as error:
            raise UserError(_failure(error, path)) from error
    ingredients, objects = _bound(tree, vars(module), str(path))
    if not any(name in STANDARD for name in ingredients):
        _refuse_experiments(path, module)
    refused = [text for name, text in objects.items() if name in REPLACEABLE]
    if refused:  # the default would be used in its place, and not said
        raise UserError("\n".join(refused))
    itself = {path.resolve(): data}
    return IngredientTable(
        path.stem,
        ingredients,
        ast.get_docstring(tree) or "",
        path,
        source,
        module,
        {**itself, **files_below(folder, own_files(script=itself))},
        objects=objects,
        mentioned=frozenset(
            node.id
            for node in ast.walk(tree)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
        ),
    )


def _refuse_experiments(path: Path, module: ModuleType) -> None:
    known = ((name, experiments.loaded(name)) for name in experiments.names())
    found = [n for n, each in known if getattr(each, "__module__", None) == module.__name__]
    if found:
        parts = path.with_suffix("").parts
        dotted = ".".join(parts) if all(p.isidentifier() for p in parts) else path.stem
        named = f"{found[0]} --include {dotted}"
        raise UserError(
            f"{path} is no recipe: it registers {', '.join(found)}, and has no ingredients of its "
            f"own. {worded(f'Write {named!r}', f'Import {dotted}, and write {found[0]!r}')} in its "
            "place."
        )


def table_of_module(module: ModuleType) -> IngredientTable:
    """The ingredients of an imported module: the library's defaults."""
    source = inspect.getsource(module)
    found, _ = _bound(ast.parse(source), vars(module), module.__name__)
    return IngredientTable(
        module.__name__, found, inspect.getdoc(module) or "", source=source, module=module
    )


def table_of_recipe(
    recipe: Recipe, *, name: str = "recipe", place: Place | None = None
) -> IngredientTable:
    """The ingredients of a recipe written as a table; ``"@package.name"`` stays an import path."""
    if place is None:
        place = Place(name)
    found, swaps = {}, {}
    for key, value in recipe.ingredients.items():
        if isinstance(value, str) and value.startswith("@"):
            swaps[key] = value
        elif is_ingredient(value):
            found[key] = Ingredient(key, value, place)
        else:
            raise UserError(_no_ingredient(place, key, value))
    return IngredientTable(name, found, recipe.doc, swaps=swaps)


def _new_module(path: Path, source: str) -> ModuleType:
    """A module under a name of its own: the same file again has the same name, no other has."""
    digest = hashlib.sha256(f"{path.resolve()}\0{source}".encode()).hexdigest()[:12]
    name = f"{SCRIPT_MODULE}{digest}"
    spec = importlib.util.spec_from_file_location(name, path.resolve())
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module  # dataclasses, annotations and inspect look it up there
    return module


@contextmanager
def _imports_from(folder: Path) -> Iterator[None]:
    """The script's folder first on ``sys.path`` while it is executed, and last from then on.

    Functions of a script may import their neighbours when they are called, long after it was
    loaded: while ingredients are built, or in the middle of the training. So the folder stays
    importable, until the next script is loaded; last, where its names hide nobody else's. Modules
    of the script before are forgotten, since the next may have others of the same names.
    """
    for name in sys.modules.keys() - _Former.known:
        if not name.startswith(SCRIPT_MODULE) and _is_of(sys.modules[name], _Former.folder):
            del sys.modules[name]
    if _Former.added is not None:
        with suppress(ValueError):
            sys.path.remove(_Former.added)
    _Former.known, _Former.folder = set(sys.modules), folder
    _Former.added = None if str(folder) in sys.path else str(folder)
    sys.path.insert(0, str(folder))
    importlib.invalidate_caches()
    try:
        yield
    finally:
        sys.path.remove(str(folder))
        if _Former.added is not None:
            sys.path.append(_Former.added)


def _is_of(module: ModuleType, folder: Path | None) -> bool:
    """Whether a module is a person's own, below the folder.

    What is installed is told by its path as it stands: of a thousand modules, to resolve it takes a
    tenth of a second.
    """
    file = getattr(module, "__file__", None)
    if folder is None or not isinstance(file, str) or "-packages" in file:
        return False
    return is_local(Path(file), folder)


class _Former:
    """What the script that was loaded last brought into this process."""

    known: ClassVar[set[str]] = set()
    folder: ClassVar[Path | None] = None
    added: ClassVar[str | None] = None
    """What is on ``sys.path`` because of it."""


def _failure(error: BaseException, path: Path) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    own = [frame for frame in frames if frame.filename == str(path)]
    folder = path.resolve().parent
    near = [f for f in frames if Path(f.filename).is_file() and is_local(Path(f.filename), folder)]
    last = (near or own)[-1:]
    place = Place(last[0].filename, last[0].lineno) if last else Place(str(path))
    if isinstance(error, SyntaxError) and error.filename:
        place = Place(error.filename, error.lineno)
    if isinstance(error, UserError):
        each = error.errors if isinstance(error, SeveralError) else (error,)
        return "\n".join(f"{place}: {one}" for one in each)
    return f"{place}: the script failed: {type(error).__name__}: {error}"


def _bound(
    tree: ast.Module, names: Mapping[str, Any], source: str
) -> tuple[dict[str, Ingredient], dict[str, str]]:
    """The ingredients; and of public names bound to objects, the words that refuse each as one."""
    ingredients, objects = {}, {}
    for name, node in _bound_names(tree.body):
        if name.startswith("_") or name not in names:
            continue
        value, place = names[name], Place(source, node.lineno, node.col_offset + 1)
        if is_ingredient(value):
            ingredients[name] = Ingredient(name, value, place)
        elif value is not None or name in WITH_DEFAULT:
            objects[name] = (
                f"{_no_ingredient(place, name, value)} "
                f"An object is given by a function: def {name}(): return ..."
            )
    return ingredients, objects


def _no_ingredient(place: Place, name: str, value: object) -> str:
    if why := read_once(value, f"the ingredient '{name}'"):
        return f"{place}: {why}"
    return (
        f"{place}: the ingredient '{name}' is a {type(value).__name__}; wanted a Config, a "
        f"component, a function, a class or like(...)."
    )


def _bound_names(body: list[ast.stmt]) -> Iterator[tuple[str, ast.stmt]]:
    """Names bound by def, class or assignment at the file's top, also under if, try and with."""
    for node in body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name, node
        elif isinstance(node, ast.Assign | ast.AnnAssign):
            for target in node.targets if isinstance(node, ast.Assign) else [node.target]:
                for leaf in ast.walk(target):
                    if isinstance(leaf, ast.Name) and isinstance(leaf.ctx, ast.Store):
                        yield leaf.id, node
        for part in ("body", "orelse", "finalbody"):
            if isinstance(node, ast.If | ast.Try | ast.With):
                yield from _bound_names(getattr(node, part, []))
        for handler in getattr(node, "handlers", []):
            yield from _bound_names(handler.body)
