"""What is said of training data before step 1: its first row, and labels that are hardly any."""

import pytest

from textmill.cli.main import main
from textmill.data import BatchedRows
from textmill.preflight.odd_labels import odd_labels
from textmill.text.columns.inputs import text_columns
from textmill.text.columns.labels import LabelColumn, label_column
from textmill.text.features.labels import FittedLabels, Labels
from textmill.text.processors.texts import LabelText
from textmill.text.tokenizers.character_tokenizers import CharacterTokenizer


@pytest.fixture
def words(tmp_path):
    """A recipe of 60 rows, a label and a text each."""
    kinds = ["good", "bad"]
    rows = [f"{kinds[i % 2]}\ta soup that is {kinds[i % 2]}, number {i}\n" for i in range(60)]
    for name in ("train.tsv", "valid.tsv"):
        (tmp_path / name).write_text("".join(rows))
    return ["train_data.path=train.tsv", "valid_data.path=valid.tsv", "trainer.max_steps=2"]


RECIPE = "classification/averaging/local"


def test_a_check_shows_the_first_row_as_it_was_read(words, capsys):
    assert main(["check", RECIPE, *words]) == 0
    said = capsys.readouterr().out
    line = "train_data begins with: text 'a soup that is good, number 0' -> label 'good'\n"
    assert said.count(line) == 1
    assert "different labels" not in said


LETTERS = CharacterTokenizer.Config(characters="a").build()


def text_of(labels):
    return LabelText(text_columns(LETTERS), {"label": LabelColumn(labels)})


@pytest.mark.parametrize(
    ("count", "own", "declared", "warned"),
    [
        (52, 14, (), True),
        (52, 13, (), False),  # four rows each
        (900, 419, (), True),
        (49, 49, (), False),  # few rows
        (50, 26, ("x",), False),
    ],
)
def test_many_is_less_than_four_of_fifty_rows_each_and_not_declared(count, own, declared, warned):
    rows = [{"text": "a", "label": f"n{min(i, own - 1)}"} for i in range(count)]
    labels = Labels(dict.fromkeys(row["label"] for row in rows))
    text = text_of(labels)
    for data in (rows, BatchedRows(rows)):
        found = odd_labels(text, data, {"labels": {"names": declared}})
        assert [line.split(":")[0] for line in found] == ["labels"] * warned


@pytest.mark.parametrize(
    ("names", "warned"),
    [
        ([f"{n % 25 / 2}" for n in range(900)], True),  # amounts
        ([f"{n % 419}" for n in range(900)], True),
        ([f"{n % 77}" for n in range(10_000)], False),  # numbers of classes
        ([f"{n % 10 / 2}" for n in range(900)], False),  # grades
        ([f"{n % 25 / 2}" for n in range(900)] + ["none"], False),
    ],
)
def test_labels_that_are_amounts_are_said_with_what_learns_them(names, warned):
    rows = [{"text": "a", "label": name} for name in names]
    labels = Labels(dict.fromkeys(names))
    found = odd_labels(text_of(labels), rows, {})
    assert len(found) == warned
    if warned:
        assert f"have {len(labels)} different labels, all of them numbers, in their" in found[0]
        assert "take an experiment of numbers (regression/..., similarity/...)" in found[0]
    assert odd_labels(text_of(labels), rows, {"labels": {"names": ("1",)}}) == []


@pytest.mark.parametrize(
    ("cells", "multiple", "separator", "setting"),
    [
        (["a|b", "b|c", "a", "c"], True, None, "labels: 'labels.separator=|'."),
        (["a|b", "c|d"], True, None, "labels: 'labels.separator=|'."),
        (["a, b", "b, c", "a", "c"], True, None, "labels: labels.separator=,."),
        (["a, b", "b; c", "a; c", "c"], True, ",", "labels: 'labels.separator=;'."),
        (["a|b", "b|c", "a", "b", "c"], False, None, "labels.multiple=true 'labels.separator=|'."),
        (["a & b", "b & a", "a", "b"], False, None, "labels.multiple=true 'labels.separator=&'."),
        (["a & b", "b", "c"], False, None, None),  # once: a name
        (["a|b", "c|d"], False, None, None),  # names
        (["a/b", "c/d"], True, None, None),  # names
        (["a|b", "b|c", "a", "c"], True, "|", None),
        (["a b", "b c", "a", "c"], True, None, None),
    ],
)
def test_several_labels_that_are_read_as_one_are_said(cells, multiple, separator, setting):
    given = FittedLabels.Config(multiple=multiple, separator=separator)
    rows = [{"text": "a", "label": cell} for cell in cells * 20]
    labels = given.build(train_data=rows)
    text = LabelText(text_columns(LETTERS), {"label": label_column(labels)})
    found = odd_labels(text, rows, {})
    assert len(found) == (setting is not None)
    if setting is not None:
        assert setting in found[0]
        assert "seem to be several with" in found[0]


def test_labels_that_differ_by_case_or_spaces_are_said_with_their_counts():
    names = ["ham"] * 30 + ["Spam"] * 3 + ["spam"] * 20 + ["very good", "Very  good "]
    rows = [{"text": "a", "label": name} for name in names]
    labels = Labels(dict.fromkeys(names))
    text = text_of(labels)
    ending = (
        " If they are one, write it in one way in all data; if not, declare them in labels.names, "
        "and this warning goes away."
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
