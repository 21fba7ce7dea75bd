"""A generator where something is read again is refused in the same words wherever it is given."""

import pytest

import textmill
from textmill.errors import DataError, UserError
from textmill.preflight.check import check

SCRIPT = """
from textmill import like
from textmill.data import BatchedRows, from_sequence
from textmill.models.classifier import Classifier
from textmill.tasks.classification import DocumentClassification
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords

tokenizer = FittedWords.Config()
labels = FittedLabels.Config()
model = Classifier.Config()
task = DocumentClassification.Config()


def rows():
    for number in range(8):
        yield {"label": "ab"[number % 2], "text": f"row {number}"}
"""
AGAIN = (
    "which can be read only once, but training reads it in every epoch. Give a list, or an object "
    "whose __iter__ starts anew."
)


@pytest.fixture
def script(tmp_path):
    def write(text):
        (tmp_path / "own.py").write_text(SCRIPT + text)
        return "own.py"

    return write


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("def train_data():\n    return rows()", "train_data: The data is a generator"),
        ("def train_data():\n    yield from rows()", "train_data: The data is a generator"),
        ("def train_data():\n    return map(dict, rows())", "train_data: The data is a map"),
        (
            "def train_data():\n    return BatchedRows(rows())",
            "train_data: BatchedRows' rows is a generator",
        ),
        (
            "def train_data():\n    return from_sequence(rows()).and_return()",
            "train_data: from_sequence's argument is a generator",
        ),
        (
            "def train_data():\n    return list(rows())\ndef valid_data():\n    return rows()",
            "valid_data: The data is a generator",
        ),
        (
            "def train_data():\n    return list(rows())\ndef callbacks():\n    yield 1",
            "callbacks is a generator",
        ),
    ],
)
def test_of_an_ingredient(script, text, message, tmp_path):
    with pytest.raises(DataError) as caught:
        textmill.train(script(text), run_dir="run")
    assert str(caught.value) == f"{message}, {AGAIN}"
    assert not (tmp_path / "run").exists()
    if "callbacks" not in text:
        assert AGAIN in check("own.py").problems[0]


def test_of_an_object_in_a_script_or_a_recipe(script):
    with pytest.raises(UserError) as caught:
        textmill.train(script("train_data = rows()"))
    assert str(caught.value).startswith("own.py:18:1: the ingredient 'train_data' is a generator,")
    with pytest.raises(UserError) as caught:
        textmill.train(textmill.Recipe(train_data=iter([])))
    assert str(caught.value) == f"recipe: the ingredient 'train_data' is a list_iterator, {AGAIN}"
