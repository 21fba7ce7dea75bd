"""Where a recipe comes from: a script, an experiment, or a YAML file that names one of them."""

import inspect
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from textmill.config.foreign_recipes import refuse_foreign
from textmill.config.ingredient import IngredientTable
from textmill.config.recipe import Recipe, experiments
from textmill.config.registry import suggest, suggest_path
from textmill.config.sources.include import include_of_file
from textmill.config.sources.script import load_script, table_of_recipe
from textmill.config.values.raw_values import Entries, Items, Node, Scalar, is_null, untyped
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import CodeNotAllowedError, Place, UserError, worded

_SUFFIXES = (".yaml", ".yml")
_OUTER = ("recipe", "include", "stages", "settings", "built")
_SHOWN = 12
"""Experiments that an error lists; more are for ``textmill list experiments``."""
PLACES = ("cache_dir", "tracking_uri")
"""Settings that say where files are written, never taken over from a run folder, which may come
from anyone: nothing is written outside it but the caches of the person's own settings."""
_SAVED_OUTER = (*_OUTER, "swaps")
"""At the top of a file that a run wrote; a person types a swap, and writes none in a file."""


@dataclass(frozen=True)
class Source:
    """A recipe's ingredients and the layers of settings that files give, the weakest first."""

    table: IngredientTable
    layers: tuple[Entries, ...]
    yaml: Path | None = None
    closed: tuple[str, ...] = ()
    left_out: Mapping[str, Scalar] = field(default_factory=dict)
    include: tuple[str, ...] = ()


def stages_of(recipe: object) -> dict[str, Entries]:
    """The stages of a recipe's file, in their order, each with its settings; often there are none.

    They are trained one after another, each from the weights of the one before.
    """
    if not isinstance(recipe, str | Path) or Path(recipe).suffix not in _SUFFIXES:
        return {}
    node = read_yaml(Path(recipe)).entries.get("stages")
    if node is None:
        return {}
    found = dict(node.entries) if isinstance(node, Entries) else {}
    settings = {name: each for name, each in found.items() if isinstance(each, Entries)}
    if not settings or len(settings) < len(found):
        raise UserError(
            f"{node.place}: stages: wanted names of stages, in their order, each with settings, as "
            "'small: {trainer: {max_steps: 1000}}'."
        )
    if wrong := [name for name in settings if not re.fullmatch(r"[\w-]+", name)]:
        raise UserError(
            f"{settings[wrong[0]].place}: stages: '{wrong[0]}' is to be the name of a folder: "
            "wanted letters, digits, '_' and '-'."
        )
    return settings


def open_recipe(
    recipe: str | Path | Recipe,
    *,
    configs: Sequence[str | Path | Entries] = (),
    allow_code: bool = False,
    is_run: Callable[[Path], bool],
) -> Source:
    """Finds a recipe and reads the files of settings that go with it.

    Args:
        recipe: ``path.py``, ``experiment/name`` or ``file.yaml``; from Python also a Recipe.
        configs: Further YAML files of settings, or settings of a stage, each stronger than the one
            before.
        allow_code: Whether code that a run folder's file names may be executed: a script, or what
            an import path leads to.
        is_run: Whether a run wrote into a folder: what is in it, or below, is then data.

    Raises:
        UserError: No such recipe, or a file that cannot be read.
        CodeNotAllowedError: A run folder's file names code, and ``allow_code`` is not given.
    """
    closed: tuple[str, ...] = ()
    left_out: dict[str, Scalar] = {}
    further, include = [], list[str]()
    for config in configs:
        if isinstance(config, Entries):
            further.append(config)
            continue
        path = Path(config)
        node = read_yaml(path)
        saved = _is_saved(path, node, is_run)
        if saved and not allow_code:
            closed = (*closed, str(path))
        if "recipe" in node.entries:
            raise UserError(
                f"{node.place_of('recipe')}: only the first file may name a recipe; remove this "
                "line, or run the file itself."
            )
        include += include_of_file(node, saved=str(path) in closed, allow_code=False)
        layer = _settings(node, path)
        further.append(without_places(layer, left_out) if saved else layer)
    file = None
    if isinstance(recipe, Recipe):
        table = table_of_recipe(recipe)
    elif Path(recipe).suffix not in _SUFFIXES:
        table = _table(str(recipe))
    else:
        file = Path(recipe)
        node = read_yaml(file)
        saved = _is_saved(file, node, is_run)
        named = node.entries.get("recipe")
        if not isinstance(named, Scalar):
            refuse_foreign(file, untyped(node))
            way = "names no recipe. Add a line like 'recipe: translation/tatoeba'."
            if saved:  # a run made in Python may have none
                way = (
                    "this run was made from a Recipe in Python, which no file names. Go on with it "
                    f"by the call that began it, with run_dir='{file.parent}'; or register the "
                    "recipe as an experiment."
                )
            raise UserError(f"{file}: {way}")
        include = [*include_of_file(node, saved=saved, allow_code=allow_code), *include]
        table = _named_table(file, named, saved=saved, allow_code=allow_code)
        layer = _settings(node, file, _SAVED_OUTER if saved else _OUTER)
        if saved:
            layer = without_places(layer, left_out)
            swaps = _saved_swaps(node, table, allow_code=allow_code)
            table = replace(table, swaps={**table.swaps, **swaps})
            closed = closed if allow_code else (str(file), *closed)
        further.insert(0, layer)
    return Source(table, tuple(further), file, closed, left_out, tuple(include))


def _settings(node: Entries, path: Path, outer: Sequence[str] = _OUTER) -> Entries:
    """The settings at the top of the file, or under its ``settings:``."""
    inner = node.entries.get("settings")
    if inner is None:
        rest = {key: item for key, item in node.entries.items() if key not in outer}
        return Entries(rest, node.place, key_places=node.key_places)
    for key in node.entries:
        if key not in outer:
            raise UserError(
                f"{node.place_of(key)}: '{key}' stands beside 'settings:'; move it under it."
            )
    if isinstance(inner, Entries):
        return inner
    if untyped(inner) is None:
        return Entries({}, inner.place or Place(str(path)))
    raise UserError(f"{inner.place}: wanted a mapping of ingredients to their settings.")


def _is_saved(path: Path, node: Entries, is_run: Callable[[Path], bool]) -> bool:
    """Whether a run wrote the file, or what it names: data, which may come from anywhere.

    A folder that lost its ``run.json``, or a second file beside the run's own, changes nothing.
    """
    if "built" in node.entries or (path.name == "config.yaml" and "settings" in node.entries):
        return True
    named = node.entries.get("recipe")
    script = isinstance(named, Scalar) and named.text.endswith(".py")
    files = [path, path.parent / named.text] if isinstance(named, Scalar) and script else [path]
    around = (f for file in files for f in (*file.absolute().parents, *file.resolve().parents))
    return any(map(is_run, around))


def _saved_swaps(node: Entries, table: IngredientTable, *, allow_code: bool) -> dict[str, str]:
    """The import paths of a run's file, but for those that the recipe itself has."""
    inner = node.entries.get("swaps")
    if inner is None or (not isinstance(inner, Entries) and untyped(inner) is None):
        return {}
    if not isinstance(inner, Entries):
        raise UserError(f"{inner.place}: wanted a mapping of ingredients to import paths.")
    found = {}
    for name, item in inner.entries.items():
        place = inner.place_of(name)
        if not isinstance(item, Scalar) or not item.text.startswith("@"):
            raise UserError(f"{place}: swaps.{name}: wanted an import path, as @package.name.")
        if table.swaps.get(name) == item.text:
            continue
        if not allow_code:
            raise CodeNotAllowedError(
                f"{place}: this run was made with {name}={item.text}, and code that a run folder "
                f"names is not executed. If you trust it, add --allow-code (allow_code=True)."
            )
        found[name] = item.text
    return found


def _named_table(path: Path, named: Scalar, *, saved: bool, allow_code: bool) -> IngredientTable:
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
    return table_of_experiment(named.text, str(named.place))


def _table(name: str) -> IngredientTable:
    if name.endswith(".py"):
        if not Path(name).exists():
            raise UserError(
                f"{name}: no such script in {Path.cwd()}. "
                f"{suggest_path(Path(name), suffixes=('.py',))}".rstrip()
            )
        return load_script(Path(name))
    if name.endswith(".json") and Path(name).is_file():
        refuse_foreign(Path(name), untyped(read_yaml(Path(name))))
    return table_of_experiment(name, worded("command line", "recipe"))


def table_of_experiment(name: str, place: str) -> IngredientTable:
    """The ingredients of a registered experiment, which was named at a place."""
    known = experiments.names()
    if name not in known:
        listed = f"experiment: {', '.join(known) or 'none'}."
        if len(known) > _SHOWN:
            listed = f"experiment: textmill list experiments has all {len(known)}."
        files = [path for suffix in (".py", *_SUFFIXES) if Path(path := f"{name}{suffix}").exists()]
        guess = suggest(name, files) or suggest(name, known)
        if Path(name).is_file():
            guess = f"'{name}' is a file of data: name a recipe, then train_data.path={name}. "
        raise UserError(
            f"{place}: no recipe is called '{name}'. {guess}"
            f"Wanted a script.py, a file.yaml, or an {listed} One of your own is known once the "
            f"module that registers it is{worded(': --include MODULE', ' imported')}."
        )
    function: Any = experiments.get(name)
    recipe = function()
    if not isinstance(recipe, Recipe):
        raise UserError(
            f"the experiment '{name}' returns a {type(recipe).__name__}; wanted a Recipe."
        )
    recipe.doc = recipe.doc or inspect.getdoc(function) or ""
    code = getattr(inspect.unwrap(function), "__code__", None)
    defined = Place(code.co_filename, code.co_firstlineno) if code else Place(name)
    return table_of_recipe(recipe, name=name, place=defined)


def without_places(settings: Entries, left_out: dict[str, Scalar]) -> Entries:
    """The settings of a run's file without :data:`PLACES`, which are added to those left out."""
    kept = _kept(settings, "", left_out)
    assert isinstance(kept, Entries)
    return kept


def differing(left_out: Mapping[str, Scalar], settings: Mapping[str, Any]) -> list[str]:
    """A line for each setting that was left out and is another now."""
    lines = []
    for name, node in left_out.items():
        now: Any = settings
        for key in name.split("."):
            now = now.get(key) if isinstance(now, Mapping) else None
        if str(now) != node.text:
            lines.append(
                f"{node.place}: {name}={node.text} is not taken over: a run folder does not say "
                f"where files are written. To write there, set it: {name}={node.text}"
            )
    return lines


def _kept(node: Node, name: str, left_out: dict[str, Scalar]) -> Node:
    """The node without what says where; that is left out, by its dotted name."""
    if isinstance(node, Items):
        numbered = enumerate(node.items)
        items = tuple(_kept(item, f"{name}.{number}", left_out) for number, item in numbered)
        return replace(node, items=items)
    if not isinstance(node, Entries):
        return node
    entries = {}
    for key, item in node.entries.items():
        inner = f"{name}.{key}".lstrip(".")
        if key not in PLACES:
            entries[key] = _kept(item, inner, left_out)
        elif isinstance(item, Scalar) and not is_null(item):
            left_out[inner] = item
    return replace(node, entries=entries)
