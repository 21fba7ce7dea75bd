"""Modules of a person's own: brought by --include, by a file's include:, and by no run's file."""

import sys
from functools import partial

import pytest

from textmill.cli.main import main
from textmill.config.sources import open_recipe as sources
from textmill.errors import CodeNotAllowedError, UserError
from textmill.run_folder.folder import wrote_in

open_recipe = partial(sources.open_recipe, is_run=wrote_in)

MODULE = '''
"""Mine."""
from textmill import Recipe, register_experiment
from textmill.recipes import registries
from textmill.training.optimizers import Optimizer

@registries.optimizers.register("tests_mine")
class Mine(Optimizer):
    """An optimizer of mine."""

    class Config(Optimizer.Config):
        lr: float = 0.5
        """Its rate."""

        def make(self, groups, module): ...

@register_experiment("tests/mine")
def mine():
    """A recipe of mine."""
    return Recipe(optimizer=Mine.Config())
'''


@pytest.fixture
def module(kitchen):
    """The file of a module that nothing has imported."""
    yield kitchen.file(MODULE, "tests_module_of_mine.py")
    sys.modules.pop("tests_module_of_mine", None)


def run(capsys, *words: str) -> tuple[int, str, str]:
    code = main(list(words))
    output = capsys.readouterr()
    return code, output.out, output.err


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["list", "optimizers"], "tests_mine An optimizer of mine."),
        (["show", "tests_mine"], "optimizer.lr (float): Its rate. (default=0.5)"),
        (["show", "tests/mine"], "optimizer tests_mine"),
        (["help", "tests/mine"], "optimizer.lr (float): Its rate. (default=0.5)"),
        (["help", "classification/docnn", "optimizer.type=tests_mine"], "type tests_mine"),
    ],
)
def test_what_a_module_registers_is_known_to_the_command(module, capsys, words, found):
    code, _, _ = run(capsys, *words)
    if words[0] != "list":
        assert code == 2
    code, output, _ = run(capsys, *words, "--include", "tests_module_of_mine")
    assert code == 0
    assert found in " ".join(output.split())


def test_the_error_of_an_unknown_experiment_says_how_one_is_known(module):
    with pytest.raises(UserError) as caught:
        open_recipe("tests/mine")
    assert str(caught.value).endswith(
        "One of your own is known once the module that registers it is imported."
    )


@pytest.mark.parametrize(
    "text", ["include: tests_module_of_mine\n", "include: [tests_module_of_mine]\n"]
)
def test_a_file_that_a_person_names_includes(kitchen, module, text):
    kitchen.file(f"recipe: tests/mine\n{text}settings: {{}}\n", "mine.yaml")
    assert open_recipe("mine.yaml").table.name == "tests/mine"
    kitchen.file(f"{text}settings: {{optimizer: {{lr: 1}}}}\n", "more.yaml")
    assert open_recipe("tests/mine", configs=["more.yaml"]).layers


def test_a_runs_file_includes_nothing_unasked(kitchen, module):
    text = "recipe: tests/mine\ninclude:\n- tests_module_of_mine\nsettings: {}\nbuilt: {}\n"
    kitchen.file(text, "config.yaml")
    with pytest.raises(CodeNotAllowedError) as caught:
        open_recipe("config.yaml")
    assert str(caught.value).startswith("config.yaml:3:3: this run was made with --include")
    assert "tests_module_of_mine" not in sys.modules
    assert open_recipe("config.yaml", allow_code=True).table.name == "tests/mine"
    assert open_recipe("config.yaml").table.name == "tests/mine"  # it is imported now


def test_a_script_that_registers_an_experiment_and_is_no_recipe_says_so(kitchen):
    kitchen.file(MODULE.replace("tests/mine", "tests/other").replace("tests_mine", "other"), "m.py")
    with pytest.raises(UserError) as caught:
        open_recipe("m.py")
    assert str(caught.value).startswith("m.py is no recipe: it registers tests/other, and has no")
