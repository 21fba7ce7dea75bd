"""Where a recipe comes from: a script, an experiment, or a YAML file that names one of them."""

import inspect
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from weft.config import registries
from weft.config.ingredient import Table
from weft.config.nodes import Entries, Scalar, untyped
from weft.config.recipe import Recipe
from weft.config.script import load_script, table_of_recipe
from weft.config.tree import near
from weft.config.yaml_files import read_yaml
from weft.errors import CodeNotAllowedError, Place, UserError

__all__ = ["Source", "open_recipe", "read_settings"]

_SUFFIXES = (".yaml", ".yml")
_OUTER = ("recipe", "settings", "built")


@dataclass(frozen=True)
class Source:
    """A recipe's ingredients and the layers of settings that files give, the weakest first.

    Args:
        table: The ingredients.
        layers: What the YAML file and the ``--config`` files set.
        name: What the recipe is called: the script's stem, the experiment's name.
        path: The script, or None for an experiment.
        yaml: The YAML file that named the recipe, or None.
    """

    table: Table
    layers: tuple[Entries, ...]
    name: str
    path: Path | None = None
    yaml: Path | None = None


def open_recipe(
    recipe: str | Path | Recipe, *, configs: Sequence[str | Path] = (), allow_code: bool = False
) -> Source:
    """Finds a recipe and reads the files of settings that go with it.

    Args:
        recipe: ``path.py``, ``experiment/name`` or ``file.yaml``; from Python also a Recipe.
        configs: Further YAML files of settings, each stronger than the one before.
        allow_code: Whether a script that a run folder's file names may be executed.

    Raises:
        UserError: No such recipe, or a file that cannot be read.
        CodeNotAllowedError: A run folder's file names a script, and ``allow_code`` is not given.
    """
    further = tuple(read_settings(Path(path)) for path in configs)
    if isinstance(recipe, Recipe):
        return Source(table_of_recipe(recipe), further, "recipe")
    if Path(recipe).suffix not in _SUFFIXES:
        table = _table(str(recipe))
        return Source(table, further, table.name, table.path)
    path = Path(recipe)
    node = read_yaml(path)
    named = node.entries.get("recipe")
    if not isinstance(named, Scalar):
        raise UserError(f"{path}: names no recipe. Add a line like 'recipe: translation/tatoeba'.")
    table = _named_table(path, named, saved=_is_saved(path, node), allow_code=allow_code)
    return Source(table, (_settings(node, path), *further), table.name, table.path, path)


def read_settings(path: Path) -> Entries:
    """The settings of a ``--config`` file, which may not name a recipe."""
    node = read_yaml(path)
    if "recipe" in node.entries:
        place = node.place_of("recipe")
        raise UserError(
            f"{place}: only the first file may name a recipe; remove this line, or run the file "
            f"itself."
        )
    return _settings(node, path)


def _settings(node: Entries, path: Path) -> Entries:
    """The settings at the top of the file, or under its ``settings:``."""
    inner = node.entries.get("settings")
    if inner is None:
        rest = {key: item for key, item in node.entries.items() if key not in _OUTER}
        return Entries(rest, node.place, key_places=node.key_places)
    for key in node.entries:
        if key not in _OUTER:
            raise UserError(
                f"{node.place_of(key)}: '{key}' stands beside 'settings:'; move it under it."
            )
    if isinstance(inner, Entries):
        return inner
    if untyped(inner) is None:
        return Entries({}, inner.place or Place(str(path)))
    raise UserError(f"{inner.place}: wanted a mapping of ingredients to their settings.")


def _is_saved(path: Path, node: Entries) -> bool:
    """Whether a run wrote the file: then it is data, which may come from anywhere."""
    return "built" in node.entries or (path.parent / "run.json").exists()


def _named_table(path: Path, named: Scalar, *, saved: bool, allow_code: bool) -> Table:
    if named.text.endswith(".py"):
        script = path.parent / named.text
        if saved and not allow_code:
            raise CodeNotAllowedError(
                f"{named.place}: this run was made by the script {script}, and code that a run "
                f"folder names is not executed. If you trust it, add --allow-code "
                f"(allow_code=True), or name the script yourself."
            )
        return load_script(script)
    if Path(named.text).suffix in _SUFFIXES:
        raise UserError(f"{named.place}: a recipe is a script or an experiment, not another file.")
    return _experiment(named.text, str(named.place))


def _table(name: str) -> Table:
    if name.endswith(".py"):
        if not Path(name).exists():
            found = (
                [str(other) for other in Path(name).parent.glob("*.py")]
                if Path(name).parent.is_dir()
                else []
            )
            guess = near(name, found)
            raise UserError(f"{name}: no such script in {Path.cwd()}. {guess}".rstrip())
        return load_script(Path(name))
    return _experiment(name, "command line")


def _experiment(name: str, place: str) -> Table:
    known = registries.experiments.names()
    if name not in known:
        listed = ", ".join(known) or "none"
        scripts = [f"{name}.py"] if Path(f"{name}.py").exists() else []
        raise UserError(
            f"{place}: no recipe is called '{name}'. {near(name, [*known, *scripts])}"
            f"Wanted a script.py, a file.yaml, or an experiment: {listed}."
        )
    function: Any = registries.experiments.get(name)
    recipe = function()
    if not isinstance(recipe, Recipe):
        raise UserError(
            f"the experiment '{name}' returns a {type(recipe).__name__}; wanted a Recipe."
        )
    recipe.doc = recipe.doc or inspect.getdoc(function) or ""
    return table_of_recipe(recipe, name=name, place=_place_of(function, name))


def _place_of(function: Any, name: str) -> Place:
    code = getattr(function, "__code__", None)
    return Place(code.co_filename, code.co_firstlineno) if code else Place(name)
