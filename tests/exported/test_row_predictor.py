"""What every predictor does with rows: bad ones become error rows, and none is read twice."""

import sqlite3
from types import SimpleNamespace
from typing import ClassVar

import datasets
import numpy as np
import pandas
import pyarrow
import pytest

from textmill.errors import DataError
from textmill.exported.row_predictor import RowPredictor


class Counted(RowPredictor):
    """Answers with the length of a text, below 5, and counts how often each is looked at."""

    def __init__(self, *, itself=False):
        super().__init__(["text"])
        self.checks_itself, self.looked = itself, []

    def length(self, row):
        text = row["text"]
        self.looked.append(text)
        if not isinstance(text, str):
            raise DataError(f"Row 0, column 'text': wanted text, found {text!r:.20}.")
        if len(text) >= 5:
            raise DataError(f"Row 0, column 'text': {text} is long.")
        return len(text)

    def check(self, row):
        self.length(row)

    def answers(self, rows):
        return [self.length(row) for row in rows]

    def answer_row(self, answer):
        return {"prediction": answer}

    def embedder(self):
        return Vectors()


class Vectors(Counted):
    def answers(self, rows):
        return [SimpleNamespace(vector=np.full(2, len(row["text"]))) for row in rows]


@pytest.mark.parametrize(("itself", "times"), [(True, 1), (False, 2)])
def test_rows_that_answers_refuses_itself_are_read_once(itself, times):
    predictor = Counted(itself=itself)
    rows = [str(number) for number in range(40)]
    assert [row["prediction"] for row in predictor.stream(rows, size=7)] == [
        len(row) for row in rows
    ]
    assert len(predictor.looked) == times * len(rows)


@pytest.mark.parametrize("itself", [True, False])
@pytest.mark.parametrize("size", [1, 2, 9])
def test_a_bad_row_has_its_own_reason_and_the_others_their_answers(itself, size):
    rows = ["ab", "endless", 7, {"text": "abc", "more": 1}, {"eggs": "a"}, "a\0", "longer", ""]
    found = [*Counted(itself=itself).stream(rows, size=size)]
    errors = [row.get("error", "") for row in found]
    assert [row.get("prediction") for row in found] == [2, None, None, 3, None, None, None, 0]
    assert errors[1] == "column 'text': endless is long."
    assert errors[2].startswith("A row is a string or a mapping")
    assert errors[4].startswith("A row needs the columns text")
    assert errors[5].startswith("Column 'text': NUL at character 1")
    assert errors[6] == "column 'text': longer is long."
    assert found[3] == {"text": "abc", "more": 1, "prediction": 3}


class PolarsFrame:
    """Has what of a DataFrame of polars is used."""

    columns: ClassVar = ["text", "n"]

    def __init__(self, rows, infer_schema_length=100):
        self.rows = rows

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, chosen):
        return PolarsFrame(self.rows[chosen])

    def to_dicts(self):
        return [dict(row) for row in self.rows]

    def __iter__(self):
        return iter([[row[name] for row in self.rows] for name in self.columns])


ROWS = [{"text": "a" * (number % 4 + 1), "n": number} for number in range(600)]
COLUMNS = {"text": [row["text"] for row in ROWS], "n": [row["n"] for row in ROWS]}
TABLES = {
    "pandas": lambda: pandas.DataFrame(ROWS, index=[f"row {row['n']}" for row in ROWS]),
    "polars": lambda: PolarsFrame(ROWS),
    "pyarrow": lambda: pyarrow.table(COLUMNS),
    "record batch": lambda: pyarrow.RecordBatch.from_pydict(COLUMNS),
    "datasets": lambda: datasets.Dataset.from_dict(COLUMNS),
    "named tuples": lambda: pandas.DataFrame(ROWS).itertuples(),
    "rows of a frame": lambda: [row for _, row in pandas.DataFrame(ROWS).iterrows()],
}


SAME_KIND = {
    "pandas": lambda frame: frame.to_dict("records"),
    "polars": PolarsFrame.to_dicts,
    "pyarrow": pyarrow.Table.to_pylist,
    "record batch": pyarrow.RecordBatch.to_pylist,
}
"""Tables whose answers are another one, and its rows."""


@pytest.mark.parametrize("kind", TABLES)
def test_a_table_is_its_rows(kind):
    predictor = Counted()
    answers = predictor(TABLES[kind]())
    if kind in SAME_KIND:
        made = SAME_KIND[kind](answers)
        assert made == [{"prediction": len(row["text"])} for row in ROWS]
    else:
        assert answers == [len(row["text"]) for row in ROWS]
    found = [*predictor.stream(TABLES[kind]())]
    assert [(row["text"], row["n"], row["prediction"]) for row in found] == [
        (row["text"], row["n"], len(row["text"])) for row in ROWS
    ]


@pytest.mark.parametrize("kind", SAME_KIND)
def test_a_table_of_answers_has_what_only_some_of_them_have(kind):
    predictor = Counted()
    predictor.answer_row = lambda found: (
        {"prediction": found} | ({"sure": 1.0} if found > 1 else {})
    )
    made = SAME_KIND[kind](predictor(TABLES[kind]()))
    assert made[1] == {"prediction": 2, "sure": 1.0}
    assert made[0]["sure"] is None or made[0]["sure"] != made[0]["sure"]


def test_answers_of_a_frame_have_its_index():
    frame = pandas.DataFrame({"text": ["a", "abc"]}, index=["x", "y"])
    assert frame.join(Counted()(frame)).loc["y"].to_dict() == {"text": "abc", "prediction": 3}


def test_columns_may_have_the_names_of_the_training_file():
    predictor = Counted()
    predictor.data = {"columns": {"text": "Message", "label": 3}}
    assert predictor({"Message": "ab"}) == predictor({"text": "ab", "Message": "other"}) == 2
    with pytest.raises(DataError, match="'text' is missing"):
        predictor({"label": "ab"})


@pytest.mark.parametrize("make", [pandas.Series, pyarrow.array, np.array, tuple, iter])
def test_a_column_is_its_texts(make):
    texts = ["ab", "a", "abc"]
    assert Counted(itself=True)(make(texts)) == [2, 1, 3]
    assert [row["prediction"] for row in Counted(itself=True).stream(make(texts))] == [2, 1, 3]


def test_a_row_with_names_is_one_row():
    frame = pandas.DataFrame([{"text": "ab", "label": "x"}])
    database = sqlite3.connect(":memory:")
    database.row_factory = sqlite3.Row
    row = database.execute("select 'ab' as text, 'x' as label").fetchone()
    for one in (frame.iloc[0], next(frame.itertuples()), row):
        assert Counted()(one) == 2
        with pytest.raises(DataError, match=r"^Wanted a list of rows, found one \w+ with the"):
            [*Counted().stream(one)]
    with pytest.raises(DataError, match=r"needs the columns text; 'text' is missing\. Found: body"):
        Counted()(frame.rename(columns={"text": "body"}).iloc[0])


def test_what_is_no_rows_is_refused_before_it_is_answered():
    columns = "If these are columns of several rows, give a table: pyarrow.table"
    lazy = type("LazyFrame", (), {"columns": ["text"], "__iter__": lambda self: iter(["text"])})()
    for given, call, stream in [
        ({"text": ["ab", "c"]}, columns, columns),
        ({"text": pandas.Series(["ab"])}, columns, columns),
        (
            {"text": "ab"},
            None,
            r"found one dict with the names text\. .* goes into a list: \[row\]",
        ),
        ({1: 2}, "'text' is missing. Found: 1", "found one dict with the names 1"),
        (pandas.Series(["ab"], index=["a"]), r"list\(texts\)", r"list\(texts\)"),
        ("ab", None, "Wanted a list of rows, found one str. Put it into a list"),
        ({"ab", "c"}, "found a set, which has no", "found a set, which has no"),
        (lazy, "found a LazyFrame, which cannot", "found a LazyFrame, which cannot"),
        (7, "found int", "found int"),
    ]:
        if call is not None:
            with pytest.raises(DataError, match=call):
                Counted()(given)
        with pytest.raises(DataError, match=stream):
            [*Counted().stream(given)]


def test_vectors_of_a_table_are_those_of_its_rows():
    frame = pandas.DataFrame({"n": [1, 2, 3], "text": ["ab", "a", "abc"]})
    assert Counted().embed(frame)[:, 0].tolist() == [2, 1, 3]
    assert Counted().embed(frame.text)[:, 0].tolist() == [2, 1, 3]
    with pytest.raises(DataError, match="found a single one"):
        Counted().embed({"text": ["ab"]})
    with pytest.raises(DataError, match="found one Series"):
        Counted().embed(frame.iloc[0])
