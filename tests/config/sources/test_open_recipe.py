"""Where recipes come from: scripts, experiments, YAML; what fails, and what is trusted."""

import sys
from functools import partial

import pytest

from textmill.config.recipe import Recipe, register_experiment
from textmill.config.sources import open_recipe as sources
from textmill.config.sources.script import load_script
from textmill.config.values.raw_values import untyped
from textmill.errors import CodeNotAllowedError, UserError
from textmill.recipes import registries
from textmill.run_folder.folder import wrote_in

open_recipe = partial(sources.open_recipe, is_run=wrote_in)


def error(call, kind=UserError):
    with pytest.raises(kind) as caught:
        call()
    assert caught.value.exit_code == 2
    return str(caught.value)


def test_ingredients_are_what_the_file_binds(kitchen):
    table = kitchen.table(
        '''"""Doc."""
from collections import OrderedDict
from pathlib import Path
import json
LIMIT = 3
_hidden = lambda: 1
Alias = OrderedDict
shown = lambda: 1
def f(): ...
class C: ...
if LIMIT:
    def g(): ...
try:
    h: object = f
except ImportError:
    h = None
'''
    )
    assert list(table.ingredients) == ["Alias", "shown", "f", "C", "g", "h"]
    assert str(table.ingredients["g"].place) == "recipe.py:12:5"
    assert table.doc == "Doc."


STANDARD_NAMES = (
    "tokenizer", "labels", "model", "module", "task", "optimizer", "lr_scheduler",
    "trainer", "train_data", "valid_data", "test_data", "reporters", "callbacks",
)  # fmt: skip


@pytest.mark.parametrize("name", STANDARD_NAMES)
def test_an_object_under_a_standard_name_is_refused(kitchen, name):
    script = f"class Made: ...\n\nif True:\n    {name} = [1]\n"
    assert error(lambda: kitchen.table(script)) == (
        f"recipe.py:4:5: the ingredient '{name}' is a list; wanted a Config, a component, a "
        f"function, a class or like(...). An object is given by a function: def {name}(): "
        "return ..."
    )
    assert f"'{name}' is a Made; wanted" in error(
        lambda: kitchen.table(f"class Made: ...\n{name}: object = Made()\n")
    )
    given = kitchen.table(f"def {name}(): return [1]\n")
    assert given.ingredients[name].value() == [1]
    assert name not in kitchen.table(f"from pathlib import Path as {name}\n").ingredients
    assert name not in kitchen.table(f"import json as {name}\n").ingredients


def test_none_is_refused_where_a_default_would_be_used(kitchen):
    names = [*STANDARD_NAMES, "anything_else"]
    message = error(lambda: kitchen.table("".join(f"{name} = None\n" for name in names)))
    found = [line.split("'")[1] for line in message.splitlines()]
    assert found == ["module", "task", "optimizer", "lr_scheduler", "trainer", "reporters"]
    assert "recipe.py:4:1: the ingredient 'module' is a NoneType; wanted a Config" in message


def test_local_modules_import_and_each_script_has_its_own(kitchen, tmp_path):
    for folder, number in (("one", 1), ("two", 2)):
        (tmp_path / folder).mkdir()
        kitchen.file(f"NUMBER = {number}\n", f"{folder}/neighbour.py")
        kitchen.file("import neighbour\ndef f(): return neighbour.NUMBER\n", f"{folder}/recipe.py")
    first, second = (load_script(kitchen.folder / f / "recipe.py") for f in ("one", "two"))
    assert (first.ingredients["f"].value(), second.ingredients["f"].value()) == (1, 2)
    assert [p.name for p in second.files] == ["recipe.py", "neighbour.py"]
    assert [*first.files][1:] == [tmp_path / "one" / "neighbour.py"]


def test_a_script_runs_again_and_edited_though_it_registers(kitchen):
    first = kitchen.table()
    again = kitchen.table()
    from tests.config.conftest import SCRIPT

    edited = kitchen.table(SCRIPT.replace("dim: int = 8", "dim: int = 9"))
    assert first.module is not again.module
    assert registries.models.get("tiny_model") is edited.ingredients["Net"].value


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def f(:\n", "bad.py:1:7: not Python: invalid syntax."),
        ("\nx = nope\n", "bad.py:2: the script failed: NameError: name 'nope' is not defined"),
        ("import no_such\n", "bad.py:1: the script failed: ModuleNotFoundError: No module named"),
        (
            "from textmill.training import Constant\n\n"
            "x = Constant.Config(warmup=1, warmup_steps='10k')\n",
            "bad.py:3: Constant.Config has no setting 'warmup'. Did you mean 'warmup_steps'? "
            "It has: warmup_steps, warmup_ratio.\n"
            "bad.py:3: Constant.Config.warmup_steps: wanted int, found '10k'.",
        ),
        ("raise SystemExit(3)\n", "bad.py:1: the script failed: SystemExit: 3"),
    ],
)
def test_a_script_that_fails_says_where(kitchen, text, message):
    path = kitchen.file(text, "bad.py")
    assert error(lambda: load_script(path)).startswith(message)


def test_experiments_are_functions_that_return_a_recipe(kitchen, monkeypatch):
    monkeypatch.setattr(registries.experiments, "_entries", {})
    monkeypatch.setattr(registries.experiments, "_modules", {})

    @register_experiment("tiny/words")
    def words():
        """Counts words."""
        return Recipe(tokenizer=lambda size=3: size)

    source = open_recipe("tiny/words")
    assert (source.table.doc, list(source.table.ingredients)) == ("Counts words.", ["tokenizer"])
    assert error(lambda: open_recipe("tiny/word")) == (
        "recipe: no recipe is called 'tiny/word'. Did you mean 'tiny/words'? "
        "Wanted a script.py, a file.yaml, or an experiment: tiny/words. One of your own is "
        "known once the module that registers it is imported."
    )


@pytest.mark.parametrize(
    "body", ["tokenizer: {vocab_size: 4}\n", "settings: {tokenizer: {vocab_size: 4}}\n"]
)
def test_a_yaml_file_names_a_recipe_and_is_the_first_layer(kitchen, body):
    kitchen.table()
    (kitchen.folder / "deep").mkdir()
    kitchen.file("recipe: ../recipe.py\n" + body, "deep/mine.yaml")
    kitchen.file("tokenizer: {vocab_size: 9}\n", "more.yaml")
    source = open_recipe("deep/mine.yaml", configs=["more.yaml"])
    assert [untyped(layer) for layer in source.layers] == [
        {"tokenizer": {"vocab_size": 4}},
        {"tokenizer": {"vocab_size": 9}},
    ]
    assert source.table.name == "recipe"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a: 1\n", "f.yaml: names no recipe. Add a line like 'recipe: translation/tatoeba'."),
        ("recipe: recipe.py\nsettings: {}\nlr: 1\n", "f.yaml:3:1: 'lr' stands beside 'settings:';"),
        ("recipe: other.yaml\n", "f.yaml:1:9: a recipe is a script or an experiment, not another"),
        ("recipe: recipe.py\nsettings: 3\n", "f.yaml:2:11: wanted a mapping of ingredients to"),
    ],
)
def test_a_yaml_recipe_with_a_mistake(kitchen, text, message):
    kitchen.table()
    kitchen.file(text, "f.yaml")
    assert error(lambda: open_recipe("f.yaml")).startswith(message)


def test_only_the_first_file_names_a_recipe(kitchen):
    path = kitchen.file("lr: 1\nrecipe: x\n", "f.yaml")
    assert error(lambda: open_recipe(Recipe(), configs=[path])) == (
        "f.yaml:2:1: only the first file may name a recipe; remove this line, or run the file "
        "itself."
    )


@pytest.mark.parametrize("sign", ["built", "run.json"])
def test_code_that_a_run_folder_names_needs_the_flag(kitchen, sign):
    kitchen.file("raise RuntimeError('executed')\n")
    kitchen.file(
        "recipe: recipe.py\nsettings: {}\n" + ("built: {}\n" if sign == "built" else ""),
        "config.yaml",
    )
    if sign == "run.json":
        kitchen.file("{}", "run.json")
    assert error(lambda: open_recipe("config.yaml"), CodeNotAllowedError) == (
        "config.yaml:1:9: this run was made by the script recipe.py, and code that a run folder "
        "names is not executed. If you trust it, add --allow-code (allow_code=True), or name the "
        "script yourself."
    )
    assert "executed" in error(lambda: open_recipe("config.yaml", allow_code=True))
    assert "executed" in error(lambda: open_recipe("recipe.py"))


def swapped_run(kitchen, outer="built: {}\n"):
    """A run's file of a recipe whose module was swapped by an import path."""
    kitchen.file("raise RuntimeError('executed')\n", "evil_swap.py")
    text = f"recipe: tiny/rows\nsettings: {{}}\nswaps:\n  module: '@evil_swap.deep'\n{outer}"
    return kitchen.file(text, "saved.yaml")


def test_a_saved_swap_needs_the_flag_and_is_of_the_table_then(kitchen, monkeypatch):
    monkeypatch.setattr(registries.experiments, "_entries", {})
    monkeypatch.setattr(registries.experiments, "_modules", {})
    register_experiment("tiny/rows")(lambda: Recipe(module=lambda size=3: size))
    path = swapped_run(kitchen)
    assert error(lambda: open_recipe(path), CodeNotAllowedError) == (
        "saved.yaml:4:3: this run was made with module=@evil_swap.deep, and code that a run folder "
        "names is not executed. If you trust it, add --allow-code (allow_code=True)."
    )
    assert "evil_swap" not in sys.modules
    source = open_recipe(path, allow_code=True)
    assert source.table.swaps == {"module": "@evil_swap.deep"}
    swapped_run(kitchen, outer="")  # a person's own file has no swaps
    assert error(lambda: open_recipe(path)).startswith("saved.yaml:3:1: 'swaps' stands beside")


def test_no_file_of_a_run_says_where_files_are_written(kitchen):
    """That of a run made of a Recipe names none, so it may be a file of settings."""
    script = kitchen.file("def tokenizer(cache_dir: str = '.', size: int = 1): return size\n")
    settings = "settings: {tokenizer: {cache_dir: /no/such, size: 2}}\n"
    kitchen.file(f"{settings}built: {{}}\n", "saved.yaml")
    kitchen.file(settings, "mine.yaml")
    source = open_recipe(script, configs=["saved.yaml"])
    assert list(source.layers[0].entries["tokenizer"].entries) == ["size"]
    assert list(source.left_out) == ["tokenizer.cache_dir"]
    source = open_recipe(script, configs=["mine.yaml"])
    assert list(source.layers[0].entries["tokenizer"].entries) == ["cache_dir", "size"]
    assert not source.left_out


def test_a_run_folder_that_lost_its_signs_is_one_still(kitchen, tmp_path):
    kitchen.file("raise RuntimeError('executed')\n")
    kitchen.file("recipe: recipe.py\nsettings: {}\n", "config.yaml")
    assert "is not executed" in error(lambda: open_recipe("config.yaml"), CodeNotAllowedError)
    kitchen.file("recipe: recipe.py\n", "other.yaml")
    (tmp_path / "checkpoints").mkdir()  # a project may have such a folder of its own
    assert "executed" in error(lambda: open_recipe("other.yaml"), UserError)
    (tmp_path / "checkpoints" / "step-00000001").mkdir()
    assert "is not executed" in error(lambda: open_recipe("other.yaml"), CodeNotAllowedError)
