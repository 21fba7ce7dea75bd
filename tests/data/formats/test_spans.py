"""Spans of characters are tags of words, wherever the rows are and stay."""

import json

import pytest

from textmill.data import text_pairs
from textmill.data.text_rows import TextRows
from textmill.errors import DataError

ROWS = [
    ("7:10:person,14:18:place", "Nobody Ann in Rome", "O B-person O B-place"),
    ("", "Nobody fell", "O O"),
    ("8:14:time", "wake at half past 8", "O O B-time I-time O"),  # within words: all of them
    ("5:9:a,0:4:b", "Bob, Ann.", "B-b B-a"),
]
SPANS = {"tags": "words"}


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    return tmp_path / "a.tsv"


@pytest.mark.parametrize("held", [1 << 20, 0])
@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl", "b.csv"])
def test_spans_of_every_format_are_tags(path, monkeypatch, held, name):
    monkeypatch.setattr(text_pairs, "HELD_BYTES", held)
    path, header = path.with_name(name), name == "b.csv"
    write = {
        ".tsv": lambda spans, text: f"{spans}\t{text}",
        ".csv": lambda spans, text: f'"{spans}","{text}"',
        ".jsonl": lambda spans, text: json.dumps({"tags": spans, "words": text}),
    }[path.suffix]
    lines = ["tags,words"] * header + [write(*row[:2]) for row in ROWS]
    path.write_text("\n".join([*lines, write("7:99:person", "Nobody")]) + "\n")
    config = TextRows.Config(
        path=path, columns=("tags", "words"), spans=SPANS, max_bad_rows=1, header=header
    )
    data = config.build()
    rows = data.rows()
    assert [(row["words"], row["tags"]) for row in data] == [row[1:] for row in ROWS]
    assert [rows[at]["tags"] for at in range(len(rows))] == [row[2] for row in ROWS]
    (bad,) = data.bad_rows
    assert bad.line == len(ROWS) + 1 + header
    assert bad.reason == (
        "column 'tags': '7:99:person' ends after the text, which has 6 characters."
    )


@pytest.mark.parametrize(
    ("cell", "reason"),
    [
        ("x", "wanted spans of characters, as 16:24:time,39:57:day, found 'x'"),
        ("0:2:a,1:3:b", "the slots 0:2:a and 1:3:b overlap."),
        ("2:3:a", "'2:3:a' holds no word of the text."),
    ],
)
def test_spans_that_are_none_are_bad_rows(path, cell, reason):
    path.write_text(f"{cell}\tab cd\n")
    with pytest.raises(DataError) as caught:
        TextRows.Config(path=path, columns=("tags", "words"), spans=SPANS).build().read()
    assert str(caught.value).splitlines()[1] == f"  {path}:1: column 'tags': {reason}"
