"""``textmill new``: what it writes runs as it is, and nothing is overwritten."""

import json
import os
import subprocess

import pytest

import textmill
from tests.warm_textmill import warm_programs
from textmill.cli.main import main
from textmill.errors import CodeNotAllowedError, UserError
from textmill.recipes.new_recipe import new_recipe


def run(folder, *words):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.run(
        [warm_programs() / "warm-python", "-m", *words], cwd=folder, env=environment,
        capture_output=True, text=True, check=False,
    )  # fmt: skip


def assert_finished(folder):
    """No lint, and no name is left to be filled in."""
    linted = run(folder, "ruff", "check", "--isolated", "--select", "E,F,I,W,B", ".")
    assert linted.returncode == 0, linted.stdout
    files = [p for p in folder.rglob("*.*") if p.is_file() and p.suffix != ".pyc"]
    assert not [p for p in files if b"NAME" in p.read_bytes()]


def pass_test(file, test, tmp_path):
    """Runs a test of a new folder as pytest would there."""
    names: dict = {"__file__": str(file)}
    exec(compile(file.read_text(), str(file), "exec"), names)
    with pytest.MonkeyPatch.context() as patch:
        names[test](tmp_path, patch)


SHIPPED = pytest.param(["--template", "classification"], marks=pytest.mark.slow)


@pytest.mark.parametrize("words", [[], SHIPPED])
def test_the_recipe_checks_and_its_own_test_passes(tmp_path, capsys, words):
    assert main(["new", "mine", *words]) == 0
    out = capsys.readouterr().out
    assert out.endswith("\nNext:\n  cd mine\n  textmill check mine.py\n  textmill train mine.py\n")
    written = sorted(str(p.relative_to(tmp_path)) for p in tmp_path.rglob("*") if p.is_file())
    assert out.splitlines()[: len(written)] == written
    folder = tmp_path / "mine"
    checked = run(folder, "textmill", "check", "mine.py")
    assert checked.returncode == 0, checked.stderr
    assert "Ready to train." in checked.stdout
    warnings = ["-W", "error", "-W", "ignore::pytest.PytestAssertRewriteWarning"]
    tested = run(folder, "pytest", "-q", *warnings, "-p", "no:cacheprovider")
    assert tested.returncode == 0, tested.stdout
    assert "1 passed" in tested.stdout
    assert_finished(folder)


def test_a_task_of_ones_own_trains_is_loaded_and_measured(tmp_path, monkeypatch, capsys):
    assert main(["new", "stars", "--task"]) == 0
    assert "\nNext:\n  cd stars\n" in capsys.readouterr().out
    folder = tmp_path / "stars"
    pass_test(folder / "test_stars.py", "test_the_recipe_trains_and_answers", tmp_path)
    monkeypatch.chdir(folder)
    with pytest.raises(CodeNotAllowedError, match="allow_code=True"):
        textmill.load(tmp_path / "run")  # unasked, no code of a folder is run
    assert_finished(folder)


def test_a_project_of_lightning_trains_and_its_pipeline_answers(tmp_path, capsys):
    assert main(["new", "mine", "--lightning"]) == 0
    trains = "textmill train --hydra configs/ train.yaml trainer=cpu"
    assert capsys.readouterr().out.endswith(f"\nNext:\n  cd mine\n  {trains}\n")
    folder = tmp_path / "mine"
    wanted = {"src", "configs", "bin", "data", "models", ".cache", "logs", "scripts"}
    assert wanted <= {path.name for path in folder.iterdir() if path.is_dir()}
    assert not [*folder.rglob("*.txt")]
    assert_finished(folder)
    pass_test(folder / "test_mine.py", "test_it_trains_and_answers", tmp_path)
    info = json.loads((tmp_path / "run" / "run.json").read_text())
    assert info["finished"]
    assert info["result"]["test"]["accuracy"] > 0.4


def test_nothing_is_overwritten(tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for name in ("mine", "link"):
        assert main(["new", name]) == 2
        assert capsys.readouterr().err.startswith(f"error: {name} exists already, and nothing is")
    assert not list((tmp_path / "mine").iterdir())


NO_NAMES = {
    "wanted a word of letters, digits and _ that begins with a letter": (
        ["", "my-recipe", "../mine", "a/b", "1st", "_x", "übung", "a\nb"]
    ),
    "it is a word of Python's. Choose another": ["class", "json"],
    "files of that name mean something else": ["recipe", "test_mine", "conftest"],
    "an installed package has that name": ["textmill", "torch"],
}


@pytest.mark.parametrize("why", NO_NAMES)
def test_names_that_cannot_be(tmp_path, why):
    for name in NO_NAMES[why]:
        with pytest.raises(UserError) as error:
            new_recipe(name, where=tmp_path)
        assert str(error.value) == f"'{name}' cannot name a recipe: {why}."
        assert not list(tmp_path.iterdir())
