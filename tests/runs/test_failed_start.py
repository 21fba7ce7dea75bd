"""A start that fails before anything of a run is written leaves no folder of it."""

import pytest

import textmill
from textmill.errors import DataError

SCRIPT = """
from textmill.data import TextRows
from textmill.models.classifier import Classifier
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords

train_data = TextRows.Config(path="rows.tsv")
tokenizer = FittedWords.Config()
labels = FittedLabels.Config()
model = Classifier.Config()


def task(module, tokenizer, labels) -> DocumentClassification:
    raise {error}
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "rows.tsv").write_text("good\ta fine day\nbad\ta grey day\n")
    return tmp_path


@pytest.mark.parametrize("error", [ValueError("mine"), KeyboardInterrupt()])
@pytest.mark.parametrize("run_dir", [None, "some/where/run"])
def test_an_error_of_the_recipe_leaves_nothing(folder, error, run_dir):
    (folder / "own.py").write_text(SCRIPT.format(error=repr(error)))
    with pytest.raises(type(error)):
        textmill.train("own.py", run_dir=run_dir)
    assert sorted(path.name for path in folder.iterdir() if path.name != "__pycache__") == [
        "own.py",
        "rows.tsv",
    ]


def test_folders_that_hold_something_else_stay(folder):
    (folder / "own.py").write_text(SCRIPT.format(error="ValueError('mine')"))
    other = folder / "runs" / "other.txt"
    other.parent.mkdir()
    other.write_text("mine")
    with pytest.raises(ValueError, match="mine"):
        textmill.train("own.py")
    assert list((folder / "runs").iterdir()) == [other]


def test_the_list_of_bad_rows_stays_where_the_error_says(folder):
    (folder / "rows.tsv").write_text("good\ta fine day\nbad\n")
    (folder / "own.py").write_text(SCRIPT.format(error="ValueError('mine')"))
    with pytest.raises(DataError) as caught:
        textmill.train("own.py", run_dir="run")
    assert str(caught.value).endswith("All bad rows are in run/bad_rows.jsonl.")
    assert (folder / "run" / "bad_rows.jsonl").is_file()
