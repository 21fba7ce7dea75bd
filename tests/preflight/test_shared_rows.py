"""The same file as training and validation data, or many rows of it, is said."""

from pathlib import Path

import pytest

import textmill
from textmill.data import text_pairs
from textmill.data.text_rows import TextRows
from textmill.preflight import data_preview as shared_rows
from textmill.preflight.check import check

LOCAL = "classification/docnn/local"
ROWS = [f"{('ham', 'spam')[n % 2]}\ttext {n}\n" for n in range(100)]
OTHER = [row.replace("text", "other") for row in ROWS]
ADVICE = ": its values say more about memorized rows than about new texts. Take other rows"
HOLDOUT = (
    ", or leave some of train_data to valid_data: train_data.holdout=0.1, and no file of its own."
)


def words(valid, train=ROWS):
    Path("train.tsv").write_text("".join(train))
    Path("valid.tsv").write_text("".join(valid))
    paths = ["train_data.path=train.tsv", "valid_data.path=valid.tsv"]
    return [*paths, "trainer.max_steps=2"]


@pytest.mark.parametrize(
    ("valid", "said"),
    [
        (ROWS, "100 of 100 rows of valid_data are in train_data"),
        (ROWS[:20] + OTHER[20:], "20 of 100 rows of valid_data are in train_data"),
        (ROWS[:19] + OTHER[19:], ""),
        (
            OTHER * 8 + ROWS * 4,
            "333 of 1,000 rows of valid_data are in train_data (looked for: 1,000 of 1,200)",
        ),
    ],
)
def test_rows_that_are_shared_in_bulk_are_said_by_check_and_training(valid, said, caplog):
    given = words(valid)
    textmill.train(LOCAL, given)
    lines = [line for line in caplog.messages if "memorized rows" in line]
    assert lines == ([said + ADVICE + HOLDOUT] if said else [])
    notes = [note for note in check(LOCAL, given).notes if "memorized rows" in note]
    assert notes == lines


def test_the_test_data_is_looked_at_and_a_holdout_is_not_the_training_data(caplog):
    words(OTHER)
    given = ["train_data.path=train.tsv", "train_data.holdout=0.2", "trainer.max_steps=2"]
    textmill.train(LOCAL, [*given, "test_data.path=train.tsv"])
    lines = [line for line in caplog.messages if "memorized rows" in line]
    assert lines == [f"85 of 100 rows of test_data are in train_data{ADVICE}."], "those not left"


@pytest.mark.parametrize("held", [1 << 20, 0])
def test_a_million_rows_are_looked_at_without_a_dict_of_each(held, monkeypatch):
    """Of rows in memory one column is looked at: ten times as fast, in CPU time."""
    monkeypatch.setattr(text_pairs, "HELD_BYTES", held)
    words(OTHER + ROWS[:50])
    train = TextRows.Config(path=Path("train.tsv"), columns=("label", "text")).build().read()
    made = []
    get = type(train.rows()).__getitem__

    def counted(rows, n):
        made.append(n)
        return get(rows, n)

    monkeypatch.setattr(type(train.rows()), "__getitem__", counted)
    valid = [{"label": "ham", "text": f"text {n}"} for n in range(100)]
    said = shared_rows._shared(train.rows(), valid, "valid_data")
    assert said.startswith("50 of 100 rows of valid_data are in train_data:")
    assert len(made) <= 100


def test_blank_lines_are_no_shared_rows():
    blank = [{"text": " "}] * 50
    train, valid = ([{"text": f"{name} {n}"} for n in range(50)] + blank for name in ("a", "b"))
    assert shared_rows._shared(train, valid, "valid_data") == ""
