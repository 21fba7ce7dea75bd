"""``textmill.fit``: from rows to the simplest of the best models, and why it is."""

import csv
import json
import random

import datasets
import pandas
import pytest

import textmill
from tests.data.look.generated_tables import rows_of
from textmill.cli.main import main
from textmill.errors import DataError, UserError
from textmill.recipes.rows_file import rows_file
from textmill.runs import fit as fitting
from textmill.runs.fit import Tried, choose


@pytest.fixture
def rows(tmp_path, monkeypatch):
    """Rows with a fifth of the labels wrong, so that no model is perfect."""
    monkeypatch.chdir(tmp_path)
    chance = random.Random(5)
    made = [*rows_of("label", chance, 240)]
    return [
        {**row, "label": chance.choice(["Billing", "Product"])} if chance.random() < 0.2 else row
        for row in made
    ]


def test_models_are_tried_on_the_same_rows_and_the_same_call_goes_on(rows, monkeypatch):
    monkeypatch.setattr(fitting, "PACKAGE", "no_such_package")
    said = list[str]()
    predictor = textmill.fit(rows, label="label", budget="30s", say=said.append)
    assert str(predictor("charged twice, again, for my radio 3")) == "Billing"
    table = next(line for line in said if line.startswith("model"))
    ngrams, docnn = table.splitlines()[1:]
    assert ngrams.startswith("classification/ngrams")
    assert docnn.startswith("classification/docnn")
    assert "classification/pretrained was not tried: pip install 'textmill[pretrained]'" in (
        "\n".join(said)
    )
    run = said[-1].removeprefix("run: ")
    assert textmill.load(run)("charged twice, again, for my radio 3") == predictor(
        "charged twice, again, for my radio 3"
    )
    again = list[str]()
    textmill.fit(rows, label="label", budget="30s", say=again.append)
    assert again[-1] == said[-1]


def test_a_command_looks_tries_and_says_why(rows, capsys):
    with open("tickets.csv", "w", newline="") as file:
        table = csv.writer(file)
        table.writerow(["Message", "Category"])
        table.writerows([row["text"], row["label"]] for row in rows)
    assert main(["fit", "tickets.csv", "--budget", "0.1s", "--run-dir", "here"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert "  label  Category  3 labels" in lines
    assert "classification/docnn was not tried: the time is over." in lines
    assert lines[-1] == "run: here/ngrams"
    assert main(["predict", "here/ngrams", "tickets.csv", "--output", "answers.csv"]) == 0


def test_a_frame_is_trained_on_answered_and_measured_by_its_own_names(
    rows, monkeypatch, tmp_path, caplog
):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    frame = pandas.DataFrame(
        {"Said": [r["text"] for r in rows], "Kind": [r["label"] for r in rows]}
    )
    data = {"path": frame, "columns": {"text": "Said", "label": "Kind"}, "holdout": 0.2}
    run = textmill.train("classification/ngrams", {"train_data": data, "reporters.console": False})
    predictor = textmill.load(run.folder)
    answers = predictor(frame)
    assert answers.index.equals(frame.index)
    right = (answers["prediction"] == frame["Kind"]).mean()
    found = predictor.evaluate(frame)
    assert found.values["accuracy"] == pytest.approx(right)
    assert predictor.evaluate(datasets.Dataset.from_pandas(frame)).values == found.values
    shown = repr(found)
    assert shown.startswith("240 rows\n\nvalue")
    assert len(shown.splitlines()) < 25
    with pytest.raises(DataError, match="Row 0: the column 'label' is missing"):
        predictor.evaluate(frame[["Said"]])
    empty = pandas.DataFrame({"Said": [None, "Where?"], "Kind": ["Billing", float("nan")]})
    held = predictor.evaluate(pandas.concat([frame, empty]))
    assert held.values == found.values
    assert caplog.messages[-1].startswith("2 of 242 rows lack a text or an answer, and are not")
    with pytest.raises(DataError, match="Row 0 lacks a text or an answer, and so do all others"):
        predictor.evaluate(empty)
    again = textmill.train("classification/ngrams", {"train_data": data})
    assert again.folder == run.folder


def test_the_first_model_has_its_share_of_the_budget_too(monkeypatch, tmp_path):
    monkeypatch.setattr(fitting, "PACKAGE", "no_such_package")
    texts = [f"the row {n} of some" for n in range(60)]
    rows = [{"source": text, "target": text.upper()} for text in texts]
    textmill.fit(rows, budget="2s", run_dir=tmp_path / "here", say=lambda _: None)
    assert "max_time: 2s" in (tmp_path / "here" / "tatoeba.yaml").read_text()


def test_cells_that_are_no_text_become_text_or_nothing(tmp_path):
    frame = pandas.DataFrame({"a": [1.5, None], "b": pandas.to_datetime(["2026-11-29", None])})
    frame["c"] = pandas.array([1, None], dtype="Int64")
    lines = rows_file(frame, tmp_path).read_text().splitlines()
    assert [json.loads(line) for line in lines] == [
        {"a": 1.5, "b": "2026-11-29 00:00:00", "c": 1},
        {"a": None, "b": None, "c": None},
    ]
    kinds = datasets.Features(
        {"text": datasets.Value("string"), "label": datasets.ClassLabel(names=["no", "yes"])}
    )
    named = datasets.Dataset.from_dict({"text": ["x", "y"], "label": [1, -1]}, features=kinds)
    made = rows_file(named, tmp_path).read_text().splitlines()
    assert [json.loads(line)["label"] for line in made] == ["yes", None]


def test_what_cannot_be_fitted_is_said(rows):
    with pytest.raises(UserError, match="budget: wanted a time above 0"):
        textmill.fit(rows, budget="0s")
    with pytest.raises(UserError, match="budget: wanted a duration"):
        textmill.fit(rows, budget="soon")
    with pytest.raises(UserError, match="encoding: is of a file"):
        textmill.fit(rows, encoding="cp1252")
    with pytest.raises(DataError, match="Row 0: wanted a mapping of columns, found str"):
        textmill.fit(["a text"])
    with pytest.raises(UserError, match="Kind"):
        textmill.fit(rows, label="Kind", say=lambda _: None)


@pytest.mark.parametrize(
    ("values", "lower", "taken"),
    [
        ([0.80, 0.90], False, 1),  # by more than a standard error
        ([0.89, 0.90], False, 0),
        ([float("nan"), 0.5], False, 1),
        ([1.5, 1.2], True, 1),
        ([1.2, 1.5], True, 0),
    ],
)
def test_the_simplest_of_the_best_is_taken(tmp_path, values, lower, taken):
    tried = [Tried(f"{n}", tmp_path, value, 0.02, 1.0) for n, value in enumerate(values)]
    assert choose(tried, "accuracy", lower=lower)[0] is tried[taken]
