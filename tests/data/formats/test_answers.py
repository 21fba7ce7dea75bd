"""Answers in every kind of file: the same rows, however they are nested, and bad ones by name."""

import json

import pyarrow
import pyarrow.feather
import pyarrow.parquet
import pytest

from textmill.data.text_rows import TextRows
from textmill.errors import DataError

COLUMNS = ("id", "question", "context", "answers", "answer_starts")
QUESTIONS = [
    ("1", "who ran", "a dog ran home", [("a dog", 0), ("dog", 2)]),
    ("2", "who sat", "a dog ran home", []),
    ("3", "where", "es ist in Köln", [("Köln", 10)]),
]
WANTED = [
    ("1", "who ran", "a dog ran home", '["a dog", "dog"]', "[0, 2]"),
    ("2", "who sat", "a dog ran home", "[]", "[]"),
    ("3", "where", "es ist in Köln", '["Köln"]', "[10]"),
]


def nested(name, question, context, answers):
    """A row of Hugging Face's SQuAD."""
    texts, starts = [text for text, _ in answers], [start for _, start in answers]
    both = {"text": texts, "answer_start": starts}
    return {"id": name, "title": "T", "question": question, "context": context, "answers": both}


def flat(*question):
    row = nested(*question)
    both = row.pop("answers")
    return {**row, "answers": both["text"], "answer_starts": both["answer_start"]}


def squad(folder, rows):
    paragraphs = [
        {
            "context": row["context"],
            "qas": [
                {
                    "id": row["id"],
                    "question": row["question"],
                    "answers": [
                        dict(zip(row["answers"], pair, strict=True))
                        for pair in zip(*row["answers"].values(), strict=True)
                    ],
                }
            ],
        }
        for row in rows
    ]
    path = folder / "rows.json"
    path.write_text(json.dumps({"data": [{"title": "T", "paragraphs": paragraphs}]}))
    return path


def jsonl(folder, rows):
    path = folder / "rows.jsonl"
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    return path


def parquet(folder, rows):
    path = folder / "rows.parquet"
    pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path, row_group_size=2)
    return path


def arrow(folder, rows):
    path = folder / "rows.arrow"
    pyarrow.feather.write_feather(pyarrow.Table.from_pylist(rows), path)
    return path


def read(path, **settings):
    return TextRows.Config(path=path, columns=COLUMNS, **settings).build()


@pytest.mark.parametrize("write", [squad, jsonl, parquet, arrow])
@pytest.mark.parametrize("make", [nested, flat])
def test_a_row_is_the_same_however_its_answers_are_nested(write, make, tmp_path):
    if write is squad and make is flat:
        pytest.skip("SQuAD's own files are nested in one way")
    data = read(write(tmp_path, [make(*question) for question in QUESTIONS]))
    assert [tuple(row[name] for name in COLUMNS) for row in data.rows()] == WANTED


def test_hugging_face_data_sets_have_the_same_rows(tmp_path):
    datasets = pytest.importorskip("datasets")
    rows = datasets.Dataset.from_list([nested(*question) for question in QUESTIONS])
    rows.save_to_disk(str(tmp_path / "saved"))
    data = read(tmp_path / "saved")
    assert [tuple(row[name] for name in COLUMNS) for row in data.rows()] == WANTED


BAD = {
    "no texts": (
        {"answer_start": [0]},
        "'answers': wanted a list 'text' of texts, found None",
    ),
    "a text and no list": (
        {"text": "a dog", "answer_start": [0]},
        "'answers': wanted a list 'text' of texts, found 'a dog'",
    ),
    "texts as starts": (
        {"text": ["a dog"], "answer_start": ["0"]},
        r"'answers': wanted a list 'answer_start' of numbers, found \['0'\]",
    ),
    "a start too few": (
        {"text": ["a dog", "dog"], "answer_start": [0]},
        "'answers': has 2 texts, but 1 numbers in 'answer_start': wanted where each begins",
    ),
    "a number that is none": (
        {"text": ["a dog"], "answer_start": [True]},
        r"'answers': wanted a list 'answer_start' of numbers, found \[True\]",
    ),
}


@pytest.mark.parametrize("name", BAD)
@pytest.mark.parametrize("write", [jsonl, parquet])
def test_bad_nesting_is_a_bad_row_that_is_named(write, name, tmp_path):
    answers, said = BAD[name]
    rows = [nested(*question) for question in QUESTIONS]
    rows[1]["answers"] = answers
    if write is parquet:  # all rows of a column have one type
        rows = [rows[1]]
    path = write(tmp_path, rows)
    line = 1 if write is parquet else 2
    match = rf"^1 of {len(rows)} rows? is bad.*\n.*rows.\w+:{line}: {said}"
    with pytest.raises(DataError, match=match):
        read(path).rows()


@pytest.mark.parametrize("write", [jsonl, parquet, arrow])
@pytest.mark.parametrize("starts", [{}, {"answer_starts": "[0]"}, {"answer_starts": None}])
def test_answers_that_begin_nowhere_are_a_list_as_any(write, starts, tmp_path):
    rows = [{**flat(*question), **starts} for question in QUESTIONS[::2]]
    for row in rows if not starts else ():
        del row["answer_starts"]
    found = read(write(tmp_path, rows), optional=("answer_starts",)).rows()
    assert [row["answers"].parts for row in found] == [("a dog", "dog"), ("Köln",)]
    assert {row["answer_starts"] for row in found} == {starts.get("answer_starts") or ""}
