"""Data of a recipe against its training data: a file that follows another is not its twin."""

import csv
import json
from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import textmill
import textmill.runs  # the default reporters name one of its own, html
from textmill.config.planning.session import Session
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.preflight.check import check
from textmill.preflight.load_data import use_by_plan
from textmill.recipes.planning import plan_recipe

ROWS = [("ham", "see you, at home"), ("spam", "win cash now")] * 4
LOCAL = "classification/averaging/local"


@pytest.fixture
def files():
    """``train.csv`` with a header, ``valid.tsv`` without one."""
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
        textmill.train(LOCAL, words)
    assert str(caught.value) == wanted
    assert check(LOCAL, words).problems == [f"valid_data: {wanted}"]


def test_a_file_with_another_header_says_which_names_it_has(files):
    Path("valid.tsv").write_text("kind\tsms\n" + Path("valid.tsv").read_text())
    words = [*files, "train_data.header=true", "trainer.max_steps=1"]
    with pytest.raises(DataError, match=r"found 'kind', 'sms'\. .* text: sms}'$"):
        textmill.train(LOCAL, words)
    run = textmill.train(LOCAL, [*words, "valid_data.columns={label: kind, text: sms}"])
    assert len(textmill.evaluate(run.folder)["valid_data"].rows) == len(ROWS)


def test_a_column_that_the_task_does_not_read_may_be_empty(files):
    rows = [(label, text, "" if at % 2 else f"id{at}") for at, (label, text) in enumerate(ROWS)]
    with Path("train.csv").open("w", newline="") as file:
        csv.writer(file).writerows(rows)
    columns = "train_data.columns=[label, text, id]"
    words = [files[0], "valid_data.path=train.csv", columns, "trainer.max_steps=1", files[2]]
    assert check(LOCAL, words).problems == []
    run = textmill.train(LOCAL, words)
    assert len(textmill.evaluate(run.folder)["valid_data"].rows) == len(ROWS)
    assert textmill.train(LOCAL, words).folder == run.folder  # its data is what it was
    kept = TextRows.Config(path="train.csv", columns=("label", "text", "id"), max_bad_rows=4)
    named = json.loads((run.folder / "run.json").read_text())["data"]["train_data"]
    assert kept.build().fingerprint() == named
    with pytest.raises(DataError, match="column 'id' is empty"):  # nobody knows who reads it
        TextRows.Config(path="train.csv", columns=("label", "text", "id")).build().read()
    with pytest.raises(DataError, match="column 'text' is empty"):
        textmill.train(LOCAL, [*words, "train_data.columns={label: 0, text: 2, id: 1}"])


def test_of_code_of_the_recipes_own_nobody_knows_what_it_reads():
    plan = plan_recipe(LOCAL, [], targets=["trainer"], draft=True).plan
    nodes = dict(plan.nodes)

    def tokenizer():
        """Reads any column."""

    nodes["tokenizer"] = replace(nodes["tokenizer"], value=tokenizer, config=None, kind=None)
    assert use_by_plan(Session(nodes, {})).columns is None


def test_all_files_that_are_missing_are_named(files):
    with pytest.raises(DataError) as caught:
        textmill.train(LOCAL)
    first, second = str(caught.value).splitlines()
    assert first.startswith("train_data: path: there is no file data/train.tsv (the working folder")
    assert second.startswith("valid_data: path: there is no file data/dev.tsv (the working folder")
    with pytest.raises(UserError, match=r"^valid_data: path: there is no file data/dev") as caught:
        textmill.train(LOCAL, ["train_data.path=train.csv", "train_data.header=true"])
    assert not caught.value.__notes__  # where textmill's own recipe has it is nobody's business
    own = "Name one (valid_data.path=...), or leave it rows of train_data: train_data.holdout=0.1."
    assert str(caught.value).endswith(own)
    with pytest.raises(UserError, match=r"^train_data: path: there is no file data/none") as caught:
        textmill.create_task(LOCAL, ["train_data.path=data/none.tsv"])
    assert not Path("runs").exists() or not any(Path("runs").rglob("run.json"))


OWN_TASK = """
from pathlib import Path

from textmill.data.text_rows import TextRows
from textmill.models.classifier import Regressor
from textmill.tasks.regression import DocumentRegression
from textmill.text.columns.numbers import NumberCheck
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Trainer


class OwnTask(DocumentRegression):
    class Config(DocumentRegression.Config):
        def row_check(self, labels=None):
            return {check}


train_data = TextRows.Config(path=Path("t.tsv"), columns=("score", "text"), max_bad_rows=1)
tokenizer = FittedWords.Config()
model = Regressor.Config()
task = OwnTask.Config()
trainer = Trainer.Config(max_steps=1)
"""


def test_a_task_of_its_own_says_which_rows_are_bad_before_it_is_built():
    Path("t.tsv").write_text("n/a\tsee you\n1.5\tsee you\n2\twin cash\n")
    Path("own.py").write_text(OWN_TASK.replace("{check}", 'NumberCheck("score")'))
    said = []
    assert check("own.py", say=said.append).problems == []
    assert any(line.startswith("train_data: 2 rows, 1 bad") for line in said)
    Path("without.py").write_text(OWN_TASK.replace("{check}", "None"))
    (problem,) = check("without.py").problems
    assert "t.tsv:1: column 'score': wanted a number, found 'n/a'" in problem
    Path("odd.py").write_text(
        OWN_TASK.replace("{check}", "type('Odd', (NumberCheck,), {'reads': 'score'})('score')")
    )
    (problem,) = check("odd.py").problems
    assert "whose reads is a tuple of the names of its fields" in problem


def test_an_unknown_label_is_said_to_be_of_its_data(files):
    Path("valid.tsv").write_text("eggs\tsee you\n")
    words = [*files, "train_data.header=true", "valid_data.header=false"]
    with pytest.raises(DataError, match="'eggs' is no label") as caught:
        textmill.train(LOCAL, words)
    assert caught.value.__notes__[0] == "in valid_data"
    (problem,) = check(LOCAL, words).problems
    assert problem.startswith("encode: valid.tsv:1: column 'label': 'eggs' is no label.")
    assert "\nin valid_data" in problem


def test_one_file_of_several_data_is_refused_once(files):
    pq.write_table(pa.table({"label": [[["a"]]], "text": ["x"]}), "bad.parquet")
    with pytest.raises(DataError, match=r"^train_data, valid_data: bad\.parquet: column 'label':"):
        textmill.train(LOCAL, ["train_data.path=bad.parquet", "valid_data.path=bad.parquet"])


@pytest.mark.parametrize("columns", ["{txt: text}", "{text: text}"])
def test_columns_without_one_that_the_task_reads_name_them(files, columns):
    words = ["train_data.path=train.csv", "train_data.header=true", "train_data.holdout=0.4"]
    (problem,) = check(LOCAL, [*words, f"train_data.columns={columns}"]).problems
    assert problem == (
        f"train_data: columns: the task reads label and text; found {columns[1:].split(':')[0]}. "
        "The file has 'label', 'text'. Say where each is, as "
        "'train_data.columns={label: label, text: text}'"
    )
