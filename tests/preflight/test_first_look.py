"""What is said of training data before step 1: its first row, and labels that are hardly any."""

import logging

import pytest

import textmill
from textmill.cli.main import main
from textmill.data import BatchedRows
from textmill.errors import DataError
from textmill.preflight.check import check
from textmill.preflight.data_preview import first_row, odd_labels, shortened
from textmill.text.columns.inputs import text_columns
from textmill.text.columns.labels import LabelColumn
from textmill.text.features.labels import Labels
from textmill.text.processors.classification import ClassificationText
from textmill.text.tokenizers.character_tokenizers import CharacterTokenizer

WARNING = (
    "labels: 60 rows of train_data have 60 different labels in their column 'label', such as "
    "'a soup that is good, number 0'. If another column has the labels, correct the order in "
    "train_data.columns, or name it by labels.column; if these are the labels, labels.names may "
    "declare them, and this is not said."
)


@pytest.fixture
def words(tmp_path, monkeypatch):
    """A recipe of 60 rows, a label and a text each."""
    monkeypatch.chdir(tmp_path)
    kinds = ["good", "bad"]
    rows = [f"{kinds[i % 2]}\ta soup that is {kinds[i % 2]}, number {i}\n" for i in range(60)]
    for name in ("train.tsv", "valid.tsv"):
        (tmp_path / name).write_text("".join(rows))
    return ["train_data.path=train.tsv", "valid_data.path=valid.tsv", "trainer.max_steps=2"]


RECIPE = "classification/averaging/local"
SWAPPED = "train_data.columns=[text, label]"


def test_a_check_shows_the_first_row_as_it_was_read(words, capsys):
    assert main(["check", RECIPE, *words]) == 0
    said = capsys.readouterr().out
    line = "train_data begins with: text 'a soup that is good, number 0' -> label 'good'\n"
    assert said.count(line) == 1
    assert "different labels" not in said


def test_a_check_notes_that_every_row_has_a_label_of_its_own(words):
    said = []
    found = check(RECIPE, [*words, SWAPPED], device="cpu", say=said.append)
    assert found.problems == []
    assert "train_data begins with: text 'good' -> label 'a soup that is good, number 0'" in said
    assert WARNING in found.notes


def test_a_training_says_both_before_it_begins(words, caplog):
    caplog.set_level(logging.INFO, logger="textmill")
    textmill.train(RECIPE, [*words, SWAPPED], run_dir="run", device="cpu")
    said = [(record.levelname, record.getMessage()) for record in caplog.records]
    first = "train_data begins with: text 'good' -> label 'a soup that is good, number 0'"
    at = said.index(("INFO", first))
    assert said[at + 1] == ("WARNING", WARNING)


def test_both_are_said_before_the_error_that_other_rows_have_other_labels(words, caplog, tmp_path):
    caplog.set_level(logging.INFO, logger="textmill")
    (tmp_path / "valid.tsv").write_text("good\tno such soup\n")
    first, said = "train_data begins with: text 'good' -> label 'a soup", []
    found = check(RECIPE, [*words, SWAPPED], device="cpu", say=said.append)
    assert "'no such soup' is no label" in found.problems[0]
    assert sum(line.startswith(first) for line in said) == 1
    assert WARNING in found.notes
    with pytest.raises(DataError, match="'no such soup' is no label"):
        textmill.train(RECIPE, [*words, SWAPPED], run_dir="run", device="cpu")
    told = [record.getMessage() for record in caplog.records]
    assert sum(line.startswith(first) for line in told) == 1
    assert told.count(WARNING) == 1


def text_of(labels):
    letters = CharacterTokenizer.Config(characters="a").build()
    return ClassificationText(text_columns(letters), {"label": LabelColumn(labels)})


@pytest.mark.parametrize("data", [[], [[1, 2]], iter([{"text": "a", "label": "b"}]), None])
def test_of_data_without_rows_at_hand_nothing_is_said(data):
    text = text_of(Labels(["b"]))
    assert first_row(text, data) == ""
    assert odd_labels(text, data, {}) == []


@pytest.mark.parametrize(
    ("count", "own", "declared", "warned"),
    [
        (50, 26, (), True),
        (50, 25, (), False),  # half
        (49, 49, (), False),  # few rows
        (50, 26, ("x",), False),
    ],
)
def test_many_is_more_than_half_of_fifty_rows_and_not_declared(count, own, declared, warned):
    rows = [{"text": "a", "label": str(min(i, own - 1))} for i in range(count)]
    labels = Labels(dict.fromkeys(row["label"] for row in rows))
    text = text_of(labels)
    for data in (rows, BatchedRows(rows)):
        found = odd_labels(text, data, {"labels": {"names": declared}})
        assert [line.split(":")[0] for line in found] == ["labels"] * warned


def test_labels_that_differ_by_case_or_spaces_are_said_with_their_counts():
    names = ["ham"] * 30 + ["Spam"] * 3 + ["spam"] * 20 + ["very good", "Very  good "]
    rows = [{"text": "a", "label": name} for name in names]
    labels = Labels(dict.fromkeys(names))
    text = text_of(labels)
    ending = (
        " If they are one, write it in one way in all data; if not, labels.names may declare them, "
        "and this is not said."
    )
    said = "labels: labels of the column 'label' that differ by case or spaces alone are different "
    assert odd_labels(text, rows, {}) == [
        f"{said}labels: 'Spam' (3), 'spam' (20).{ending}",
        f"{said}labels: 'very good' (1), 'Very  good ' (1).{ending}",
    ]
    assert odd_labels(text, rows, {"labels": {"names": ("x",)}}) == []


@pytest.mark.parametrize(("rest", "said"), [(["a", "b"] * 25, True), (["a", "b"] * 24, False)])
def test_a_first_label_that_no_other_row_has_may_be_a_header(rest, said):
    rows = [{"text": "a", "label": name} for name in ["Art", *rest]]
    text = text_of(Labels(["Art", "a", "b"]))
    assert odd_labels(text, rows, {}) == said * [
        "labels: 'Art', which train_data begins with, is the label of no other row. If its first "
        "row is a header: train_data.header=true"
    ]
    assert odd_labels(text, rows[1:], {}) == []


def test_what_is_shown_of_a_value_fits_on_a_line():
    assert shortened("a" * 60) == repr("a" * 60)
    assert shortened("a" * 61) == repr("a" * 57 + "...")
    assert shortened([1.5, 2]) == "[1.5, 2]"
    assert shortened("two\nlines") == r"'two\nlines'"
