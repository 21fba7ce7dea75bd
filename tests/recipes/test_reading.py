"""Data of a recipe against its training data: a file that follows another is not its twin."""

import csv
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import weft
from weft.errors import DataError, UserError
from weft.recipes.check import check

ROWS = [("ham", "see you, at home"), ("spam", "win cash now")] * 4
LOCAL = "classification/averaging/local"


@pytest.fixture
def files(tmp_path, monkeypatch):
    """``train.csv`` with a header, ``valid.tsv`` without one."""
    monkeypatch.chdir(tmp_path)
    with Path("train.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("label", "text"), *ROWS])
    Path("valid.tsv").write_text("".join(f"{label}\t{text}\n" for label, text in ROWS))
    return ["train_data.path=train.csv", "valid_data.path=valid.tsv", "reporters.console=false"]


def test_the_header_of_the_training_data_is_not_the_first_row_of_another_file(files):
    words = [*files, "train_data.header=true"]
    wanted = (
        "valid.tsv:1: wanted a header with 'label', 'text', found 'ham', 'see you, at home'. If "
        "that is a row: valid_data.header=false. If it is a header of other names: "
        "'valid_data.columns={label: ham, text: \"see you, at home\"}'"
    )
    with pytest.raises(DataError) as caught:
        weft.train(LOCAL, words)
    assert str(caught.value) == wanted
    assert check(LOCAL, words).problems == [f"valid_data: {wanted}"]


def test_a_file_with_another_header_says_which_names_it_has(files):
    Path("valid.tsv").write_text("kind\tsms\n" + Path("valid.tsv").read_text())
    words = [*files, "train_data.header=true", "trainer.max_steps=1"]
    with pytest.raises(DataError, match=r"found 'kind', 'sms'\. .* text: sms}'$"):
        weft.train(LOCAL, words)
    run = weft.train(LOCAL, [*words, "valid_data.columns={label: kind, text: sms}"])
    assert len(weft.evaluate(run.folder)["valid_data"].rows) == len(ROWS)


def test_csv_and_tsv_go_together(files):
    words = [*files, "train_data.header=true", "valid_data.header=false", "trainer.max_steps=1"]
    run = weft.train(LOCAL, words)
    assert len(weft.evaluate(run.folder)["valid_data"].rows) == len(ROWS)
    with pytest.raises(DataError) as caught:
        weft.train(LOCAL, [*words, "train_data.format=csv"])
    text = str(caught.value)
    assert "\nvalid.tsv is read as csv, as valid_data.format says; by its name it is tsv: " in text


def test_a_header_that_was_not_said_is_no_row_to_learn(files):
    with pytest.raises(DataError) as caught:
        weft.train(LOCAL, files)
    assert str(caught.value) == (
        "train.csv:1: wanted a row, found names of columns, 'label', 'text'. If that is a header: "
        "train_data.header=true. If it is a row, let another one be the first."
    )


def test_all_files_that_are_missing_are_named(files):
    with pytest.raises(DataError) as caught:
        weft.train(LOCAL)
    first, second = str(caught.value).splitlines()
    assert first.startswith("train_data: path: there is no file data/train.tsv (the working folder")
    assert second.startswith("valid_data: path: there is no file data/dev.tsv (the working folder")
    with pytest.raises(UserError, match=r"^valid_data: path: there is no file data/dev") as caught:
        weft.train(LOCAL, ["train_data.path=train.csv", "train_data.header=true"])
    assert caught.value.__notes__[0].startswith("in the ingredient 'valid_data' (")
    with pytest.raises(UserError, match=r"^train_data: path: there is no file data/none") as caught:
        weft.create_task(LOCAL, ["train_data.path=data/none.tsv"])
    assert not Path("runs").exists() or not any(Path("runs").rglob("run.json"))


def test_an_unknown_label_is_said_to_be_of_its_data(files):
    Path("valid.tsv").write_text("eggs\tsee you\n")
    words = [*files, "train_data.header=true", "valid_data.header=false"]
    with pytest.raises(DataError, match="'eggs' is no label") as caught:
        weft.train(LOCAL, words)
    assert caught.value.__notes__[0] == "in valid_data"
    (problem,) = check(LOCAL, words).problems
    assert problem.startswith("encode: valid.tsv:1: column 'label': 'eggs' is no label.")
    assert "\nin valid_data" in problem


def test_one_file_of_several_data_is_refused_once(files):
    pq.write_table(pa.table({"label": [[["a"]]], "text": ["x"]}), "bad.parquet")
    with pytest.raises(DataError) as caught:
        weft.train(LOCAL, ["train_data.path=bad.parquet", "valid_data.path=bad.parquet"])
    assert str(caught.value) == (
        "train_data, valid_data: bad.parquet: column 'label': wanted text, numbers or lists of "
        "them, found the type list<element: list<element: string>>."
    )
