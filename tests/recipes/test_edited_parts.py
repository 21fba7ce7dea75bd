"""Code of a person's own that was edited after a run was trained with it: said, or refused."""

import shutil
from pathlib import Path

import pytest

from tests.recipes.test_same_module_names import INCLUDED
from tests.recipes.test_same_module_names import trained as train_in
from tests.runs.test_own_parts import PARTS, QUIET, data_in, in_new_process, script
from textmill.config.values.yaml_files import dump_yaml

EDITS = {"x.transpose(1, 2)).transpose(1, 2)": "x.transpose(1, 2)).transpose(1, 2) * 3"}
TELL = "import logging, sys; logging.basicConfig(stream=sys.stdout, format='%(message)s')\n"


def edit(path: Path) -> None:
    text = path.read_text()
    for before, now in EDITS.items():
        assert before in text
        text = text.replace(before, now)
    path.write_text(text)


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> Path:
    """A run of a YAML file that includes a module, beside it."""
    folder = tmp_path_factory.mktemp("included")
    data_in(folder)
    (folder / "named_parts.py").write_text(PARTS)
    (folder / "mine.yaml").write_text(dump_yaml({**INCLUDED, "include": "named_parts"}))
    train_in(folder, "mine.yaml")
    return folder


@pytest.fixture
def home(trained, tmp_path) -> Path:
    return Path(shutil.copytree(trained, tmp_path / "home"))


def test_a_run_does_not_go_on_with_an_edited_module(home):
    go_on = (
        "import textmill\n"
        "from textmill.errors import UserError\n"
        "try:\n"
        "    print(textmill.train('run', ['trainer.max_epochs=2'], "
        "allow_code=True).result['steps'])\nexcept UserError as error:\n"
        "    print(error)\n"
    )
    edit(home / "named_parts.py")
    assert in_new_process(go_on, home, cwd=home).splitlines() == [
        "run cannot go on: named_parts.py changed since the run was trained. Restore it; or "
        "train anew with it: name the recipe itself."
    ]
    (home / "named_parts.py").write_text(PARTS)
    assert in_new_process(go_on, home, cwd=home).splitlines()[-1].isdigit()


@pytest.mark.slow
def test_a_module_that_the_runs_copy_of_a_script_imports_is_compared_too(tmp_path):
    home, away = tmp_path / "home", tmp_path / "away"
    home.mkdir()
    away.mkdir()
    (away / "far_factor.py").write_text("FACTOR = 2\n")
    path = script(home, "pooling=First.Config()")
    text = path.read_text().replace("return states[:, 0] * 2", "return states[:, 0] * FACTOR")
    path.write_text(
        text.replace("import torch\n", "import torch\nfrom far_factor import FACTOR\n", 1)
    )
    train = f"import textmill; textmill.train('own.py', {QUIET!r}, run_dir='run')"
    in_new_process(train, away, cwd=home)
    load = f"{TELL}import textmill\ntextmill.load('run', allow_code=True)\n"
    assert in_new_process(load, away, cwd=home) == ""
    (away / "far_factor.py").write_text("FACTOR = 3\n")
    assert in_new_process(load, away, cwd=home) == (
        f"{away / 'far_factor.py'} changed since run was trained: the answers may be those of "
        "another model. Restore it, or train anew.\n"
    )
