"""One file is enough: train_data.holdout makes validation data of every recipe of files."""

import json
import logging
from pathlib import Path

import pytest

import textmill
from tests.recipes.local_data import ROWS, short, write_data
from tests.runs.tiny import write_recipe
from textmill.config.values.yaml_files import read_yaml
from textmill.errors import PlanError
from textmill.recipes import registries

LOCAL = "classification/docnn/local"
SHARE = "train_data.holdout=0.2"
STEPS = "trainer.max_steps=2"
LABELS = "".join(f"{('ham', 'spam')[n % 2]}\ttext {n}\n" for n in range(60)) + "eggs\trare\n"
TASKS = (
    *("classification/docnn", "joint/bilstm-crf", "pairs/", "parsing/", "question/drqa"),
    *("regression/", "summarization/", "tagging/bilstm-crf", "translation/tatoeba"),
)
QUICK = {
    f"{name}/local"
    for name in ("classification/docnn", "summarization/scitldr", "tagging/bilstm-crf")
}
FILES = [
    name
    for name in registries.experiments.names()
    if name.endswith("/local") and name.startswith(TASKS)
]


def written(name="all.tsv", text=LABELS):
    Path(name).write_text(text, encoding="utf-8")
    return f"train_data.path={name}"


def rows_of(run):
    """Training and validation rows of a run, as its record has them."""
    said = json.loads((run / "run.json").read_text())["data_summary"]
    return [said[name]["rows"] for name in ("train_data", "valid_data")]


@pytest.mark.parametrize(
    "experiment", [n if n in QUICK else pytest.param(n, marks=pytest.mark.slow) for n in FILES]
)
def test_a_file_and_a_share_are_enough_for_every_task(experiment):
    settings = write_data(experiment)
    path = Path(settings["train_data"]["path"])
    if path.suffix == ".conll":  # else all rows are the same
        words = (f"Ann{n}\tB-per\nsaw\tO\nBob{n}\tB-per\n" for n in range(ROWS))
        path.write_text("\n".join(words), encoding="utf-8")
    Path(settings["valid_data"]["path"]).unlink(missing_ok=True)
    run = textmill.train(experiment, ["train_data.holdout=0.5", *short(experiment)]).folder
    train, valid = rows_of(run)
    assert train + valid == ROWS
    (found,) = textmill.evaluate(run).values()
    assert len(found.rows) <= valid


def test_the_run_says_what_was_divided_and_how():
    run = textmill.train(LOCAL, [written(), SHARE, STEPS]).folder
    settings = read_yaml(run / "config.yaml").entries["settings"].entries
    said = [
        [settings[data].entries[name].text for name in ("path", "holdout", "held_out", "stratify")]
        for data in ("train_data", "valid_data")
    ]
    assert said == [["all.tsv", "0.2", "false", "label"], ["all.tsv", "0.2", "true", "label"]]
    facts = json.loads((run / "run.json").read_text())["data_summary"]
    assert facts["valid_data"]["holdout"] == {
        "share": 0.2,
        "held_out": True,
        "rule": "blake2b of the row's columns, by their names, below the share; of each label, "
        "one row is kept for training",
    }
    names = textmill.load(run).task.text.label.labels.names
    assert "eggs" in names, "a label of one row is learnt"


@pytest.mark.parametrize("count", [1, 20])
def test_of_other_data_no_row_is_held_out_and_nothing_says_so(count, caplog):
    run = textmill.train(LOCAL, [written(), SHARE, STEPS]).folder
    Path("other.tsv").write_text("ham\tone more\n" * count)
    for name in ("valid_data", "test_data"):
        caplog.clear()
        with caplog.at_level(logging.INFO):
            found = textmill.evaluate(run, [f"{name}.path=other.tsv"])
        assert len(found[name].rows) == count
        assert "held out" not in caplog.text
        assert f"{name} is not this run's file: all of its rows are measured." in caplog.messages


def test_the_run_is_evaluated_on_its_part_and_on_whole_other_files(caplog):
    path = written()
    run = textmill.train(LOCAL, [path, SHARE, STEPS]).folder
    held_out = {row["text"] for row in textmill.evaluate(run)["valid_data"].rows}
    Path("other.tsv").write_text(LABELS + "ham\tone more\n")
    other = textmill.evaluate(run, ["valid_data.path=other.tsv"])["valid_data"].rows
    assert len(other) == 62
    assert len(textmill.evaluate(run, ["test_data.path=other.tsv"])["test_data"].rows) == 62
    Path("moved.tsv").write_text(LABELS)  # the same rows: most of them were trained on
    with caplog.at_level(logging.INFO):
        moved = textmill.evaluate(run, ["valid_data.path=moved.tsv"])["valid_data"].rows
    assert "valid_data is this run's own file: its held-out rows are measured." in caplog.messages
    assert {row["text"] for row in moved} == held_out
    written(text=LABELS + "".join(f"ham\tnew {n}\n" for n in range(40)))
    grown = {row["text"] for row in textmill.evaluate(run)["valid_data"].rows}
    assert held_out < grown, "no row that was trained on"
    assert all(text.startswith("new") for text in grown - held_out)


def test_a_scripts_test_file_is_read_whole_and_its_validation_file_is_not_read(tmp_path):
    write_recipe(tmp_path)
    test = Path("test.tsv").read_text().count("\n")
    Path("valid.tsv").unlink()
    run = textmill.train("tiny.py", [STEPS, "train_data.holdout=0.3"]).folder
    said = json.loads((run / "run.json").read_text())["data_summary"]
    assert said["test_data"]["rows"] == test
    assert "holdout" not in said["test_data"]
    assert sum(rows_of(run)) == 26


def test_a_test_file_that_is_named_is_read_whole():
    Path("test.tsv").write_text(LABELS)
    run = textmill.train(LOCAL, [written(), SHARE, STEPS, "test_data.path=test.tsv"]).folder
    assert json.loads((run / "run.json").read_text())["data_summary"]["test_data"]["rows"] == 61


@pytest.mark.parametrize(
    ("word", "error"),
    [
        ("valid_data.path=v.tsv", "overrides: valid_data.path=v.tsv: valid_data.path names a"),
        ("valid_data=null", "train_data.holdout=0.2 holds rows out for valid_data, but valid_data"),
        ("valid_data.held_out=false", "train_data.holdout=0.2 holds rows out for valid_data, but"),
    ],
)
def test_rows_are_never_held_out_for_nothing(word, error):
    with pytest.raises(PlanError) as caught:
        textmill.train(LOCAL, [written(), SHARE, word])
    assert error in str(caught.value)
    assert not Path("runs").exists()


def test_of_other_rows_it_is_said_what_to_do():
    with pytest.raises(PlanError) as caught:
        textmill.train("translation/demo", [SHARE])
    assert str(caught.value).partition(" It has: ")[0] == (
        f"1 problem in the recipe; nothing was run.\n  overrides: {SHARE}: train_data has no "
        "setting 'holdout'. These rows are not divided: give valid_data rows of its own."
    )
    with pytest.raises(PlanError, match=r"In textmill it is train_data\.holdout\."):
        textmill.train(LOCAL, ["validation_split=0.1"])
