"""A start that fails before anything of a run is written leaves no folder of it."""

import pytest

import textmill

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
