"""A start that fails before anything of a run is written leaves no folder of it."""

import pytest

import textmill
from tests.recipes.test_read_once import SCRIPT as CLASSIFIER

SCRIPT = f"""{CLASSIFIER.replace("task = DocumentClassification.Config()", "")}
from textmill.data import TextRows

train_data = TextRows.Config(path="rows.tsv")


def task(module, tokenizer, labels) -> DocumentClassification:
    raise ERROR
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.tsv").write_text("good\ta fine day\nbad\ta grey day\n")
    return tmp_path


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
@pytest.mark.parametrize("run_dir", [None, "some/where/run"])
def test_an_error_of_the_recipe_leaves_nothing(folder, error, run_dir):
    (folder / "own.py").write_text(SCRIPT.replace("ERROR", repr(error)))
    with pytest.raises(type(error)):
        textmill.train("own.py", run_dir=run_dir)
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == [
        "own.py",
        "rows.tsv",
    ]
