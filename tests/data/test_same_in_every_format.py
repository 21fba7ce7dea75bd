"""The same rows in every format are the same encoded rows: numbers and lists as a TSV's text."""

import json

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from textmill.data.text_rows import TextRows
from textmill.text.columns.labels import LabelColumn, LabelsColumn, SlotsColumn, TagsColumn
from textmill.text.columns.numbers import FittedNumbers, NumberColumn, NumbersColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.columns.words import CharactersColumn, WordsColumn
from textmill.text.features.labels import FittedLabels
from textmill.text.features.slots import FittedSlots
from textmill.text.features.spelling import FittedCharacters
from textmill.text.processors.column_processor import PlainColumns
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {
        "text": "in New York",
        "code": 1,
        "good": True,
        "topics": ["sport", "news"],
        "score": 3.5,
        "dense": [29, 0.1],
        "words": ["New", "York"],
        "tags": [3, 4],
        "slots": ["B-city", "I-city"],
        "target": 7,
    },
    {
        "text": "in Rome",
        "code": 20,
        "good": False,
        "topics": ["news"],
        "score": -2,
        "dense": [1e-07, 12345678],
        "words": ["in", "Rome"],
        "tags": [0, 3],
        "slots": ["O", "B-city"],
        "target": 0.25,
    },
]
"""Of classification, single and multi label, with dense features; regression; tagging; slots; and a
text that is a number."""


def as_text(value):
    if isinstance(value, list):
        return " ".join(map(as_text, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def of_tsv(path):
    path = path.with_suffix(".tsv")
    lines = ("\t".join(as_text(value) for value in row.values()) + "\n" for row in ROWS)
    path.write_text("".join(lines))
    return path


def of_csv(path):
    text = of_tsv(path).read_text().replace("\t", ",")
    path.with_suffix(".csv").write_text(text)
    return path.with_suffix(".csv")


def of_jsonl(path):
    path.with_suffix(".jsonl").write_text("".join(json.dumps(row) + "\n" for row in ROWS))
    return path.with_suffix(".jsonl")


def table():
    floats = ("score", "target")
    columns = {
        # A JSON number is whole or not by itself, a column of Parquet as a whole.
        name: [float(row[name]) if name in floats else row[name] for row in ROWS]
        for name in ROWS[0]
    }
    return pa.table({**columns, "dense": pa.array(columns["dense"], pa.list_(pa.float64()))})


def of_parquet(path):
    pq.write_table(table(), path.with_suffix(".parquet"))
    return path.with_suffix(".parquet")


def of_arrow(path):
    made = table()
    with pa.ipc.new_stream(str(path.with_suffix(".arrow")), made.schema) as out:
        out.write_table(made)
    return path.with_suffix(".arrow")


def encoded(path):
    """Everything is fitted on the rows of a file, which are then encoded."""
    data = TextRows.Config(path=path, columns=tuple(ROWS[0])).build()
    words = FittedWords.Config(columns=("text", "words"), min_count=1).build(train_data=data)
    several = {"multiple": True}
    columns = {
        "text": TextColumn("text", words),
        "code": LabelColumn(FittedLabels.Config(column="code").build(train_data=data)),
        "good": LabelColumn(FittedLabels.Config(column="good").build(train_data=data)),
        "topics": LabelsColumn(
            FittedLabels.Config(column="topics", **several).build(train_data=data)
        ),
        "score": NumberColumn("score"),
        "dense": NumbersColumn("dense", FittedNumbers.Config().build(train_data=data)),
        "words": WordsColumn("words", words),
        "letters": CharactersColumn(FittedCharacters.Config(column="words").build(train_data=data)),
        "tags": TagsColumn(FittedLabels.Config(column="tags", **several).build(train_data=data)),
        "slots": SlotsColumn(FittedSlots.Config(text="words").build(train_data=data)),
        "target": NumberColumn("target"),
    }
    names = {role: [*c.labels] for role, c in columns.items() if hasattr(c, "labels")}
    alone = {"dense": columns.pop("dense")}  # beside words it would be of each word
    parts = [PlainColumns(each, {}) for each in (columns, alone)]
    rows = data.rows()
    found = [part.encode(rows, with_targets=True).columns for part in parts]
    return names, {**found[0], **found[1]}


@pytest.mark.parametrize("written", [of_csv, of_jsonl, of_parquet, of_arrow])
def test_rows_of_a_tsv_are_encoded_alike(tmp_path, written):
    (names, wanted), (same, found) = (
        encoded(make(tmp_path / "rows")) for make in (of_tsv, written)
    )
    assert same == names
    assert names["code"] == ["1", "20"]
    assert names["tags"] == ["3", "4", "0"]
    assert set(found) == set(wanted)
    for role, column in wanted.items():
        np.testing.assert_array_equal(found[role].values, column.values, err_msg=role)
        np.testing.assert_array_equal(found[role].offsets, column.offsets, err_msg=role)
    assert wanted["topics"].values.tolist() == [0, 1, 1]


@pytest.mark.parametrize("lists", [(), ("label",)])
@pytest.mark.parametrize("separator", [None, ",", "|"])
@pytest.mark.parametrize("suffix", ["jsonl", "parquet"])
def test_labels_of_a_list_are_not_cut(tmp_path, suffix, separator, lists):
    listed = {"label": [["a b", "c|d, e"], ["c|d, e"]], "text": ["x", "y"]}
    path = tmp_path / f"a.{suffix}"
    if suffix == "parquet":
        pq.write_table(pa.table(listed), path)
    else:
        rows = (dict(zip(listed, row, strict=True)) for row in zip(*listed.values(), strict=True))
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    data = TextRows.Config(path=path, lists=lists).build()
    labels = FittedLabels.Config(multiple=True, separator=separator).build(train_data=data)
    assert list(labels) == ["a b", "c|d, e"]
    encoded = LabelsColumn(labels).encode(data.rows().column("label"))
    assert [row.tolist() for row in encoded] == [[0, 1], [1]]
