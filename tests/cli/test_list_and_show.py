"""``textmill list`` and ``textmill show``."""

import subprocess
import sys

import pytest

from textmill.cli.main import main
from textmill.config.help import describe
from textmill.recipes import registries


def test_list_names_every_concept(capsys):
    assert main(["list"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert any(line.split()[0] == "optimizers" and "adamw" in line for line in lines)


def test_list_of_one_concept_says_in_a_line_what_each_name_is(capsys):
    assert main(["list", "optimizers"]) == 0
    names = capsys.readouterr().out
    assert [line.split()[0] for line in names.splitlines()] == registries.optimizers.names()
    assert all(len(line.split()) > 3 for line in names.splitlines()), names
    assert main(["list", "optimizer"]) == 0
    assert capsys.readouterr().out == names


def test_every_experiment_has_a_line_whether_its_module_is_imported_or_not(capsys):
    def listed():
        assert main(["list", "experiments"]) == 0
        lines = capsys.readouterr().out.splitlines()
        listed = {line.split()[0]: line.partition(" ")[2].strip() for line in lines}
        return {name: listed[name] for name in shipped}

    shipped = list(registries.experiments._modules)  # other tests register some of their own
    before = listed()
    assert all(before.values()), before
    assert before["translation/demo"].startswith("English to French on the corpus that textmill ")
    for name in shipped:
        registries.experiments.get(name)
    assert listed() == before


def test_an_unknown_concept(capsys):
    assert main(["list", "optimisers"]) == 2
    assert capsys.readouterr().err.startswith("error: no concept is called 'optimisers'. Did you")


def test_list_imports_no_torch():
    code = "import sys; from textmill.cli.main import main; main(['list'])"
    code += "; main(['list', 'experiments'])"
    code += "; sys.exit('torch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)


def test_show_prints_docstring_settings_types_and_defaults(capsys):
    assert main(["show", "adamw"]) == 0
    text = capsys.readouterr().out
    assert text.startswith("optimizer adamw (textmill.")
    assert "  optimizer.lr (float): " in text
    assert "(default=" in text
    assert "Built from the ingredients: module" in text
    assert main(["show", "optimizers/adamw"]) == 0
    assert capsys.readouterr().out == text


def test_show_of_an_experiment_says_what_it_is_made_of(capsys):
    assert main(["show", "tagging/ner"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("experiment tagging/ner (textmill.")
    assert "  valid_data    like train_data: path=data/dev.conll shuffle=false" in lines
    assert "  trainer       Trainer: max_epochs=20 ema=0.999 selection.metric=span_f1" in lines
    assert lines[-1] == "textmill help tagging/ner --all prints every setting."


@pytest.mark.parametrize("name", registries.experiments.names())
def test_every_experiment_can_be_shown(name):
    assert f"textmill help {name} --all prints every setting." in describe(name)
