"""Files to predict: as the training data is read, without targets, whatever else is there."""

import io
import json

import pyarrow as pa
import pyarrow.parquet
import pytest

from textmill.data.bad_rows import BadRow
from textmill.data.input_files import input_layout
from textmill.data.text_pairs import TextPairs
from textmill.data.text_rows import TextRows
from textmill.errors import DataError

SMS = TextRows.Config(path="sms.tsv")  # label, text
WITH_HEADER = TextRows.Config(path="sms.tsv", header=True)
NAMED = TextRows.Config(path="sms.csv", columns={"label": "v1", "text": "v2"}, header=True)
PAIRED = TextRows.Config(path="nli.tsv", columns=("label", "text1", "text2"))
WORDS = TextRows.Config(path="names.conll", columns={"words": 0, "tags": -1})
TREEBANK = TextRows.Config(path="ewt.conll", columns={"words": 1, "tags": 3})


@pytest.fixture
def read(tmp_path):
    """The rows of a file of that name and content; a bad one is its reason."""

    def rows(name, content, config, inputs=("text",), said=(), form=None):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        layout = input_layout(path, config, list(inputs), said=said, form=form)
        with path.open("rb") as stream:
            found = [row for _, row in layout.scan(stream, name)]
        return [
            row.reason if isinstance(row, BadRow) else dict(zip(layout.columns, row, strict=True))
            for row in found
        ]

    return rows


def parquet(**columns):
    stream = io.BytesIO()
    pa.parquet.write_table(pa.table(columns), stream)
    return stream.getvalue()


JSON = json.dumps({"text": "hi you", "more": 1}) + "\n"


@pytest.mark.parametrize(
    ("name", "content", "config"),
    [
        ("a.tsv", "ham\thi you\n", SMS),
        ("a.tsv", "hi you\n", SMS),
        ("a.tsv", "?\thi you\tmore\n", SMS),
        ("a.csv", 'ham,"hi you"\n', SMS),
        ("a.csv", "hi you\n", SMS),
        ("a.tsv", "label\ttext\nham\thi you\n", WITH_HEADER),
        ("a.tsv", "Text \nhi you\n", WITH_HEADER),
        ("a.tsv", "text\tlabel\nhi you\tham\n", SMS),
        ("a.tsv", "id\tText\n7\thi you\n", SMS),
        ("a.tsv", "id\ttext\tlabel\n7\thi you\tham\n", WITH_HEADER),
        ("a.csv", "v2\nhi you\n", NAMED),
        ("a.csv", "v2,v1\nhi you,ham\n", NAMED),
        ("a.jsonl", JSON, SMS),
        ("a.jsonl", JSON, WITH_HEADER),
        ("a.jsonl", '{"v2": "hi you"}\n', NAMED),
        ("a.jsonl", JSON, TextRows.Config(path="sms.tsv", columns={"label": 4, "text": 2})),
        ("a.ndjson", JSON, SMS),
        ("a.parquet", parquet(text=["hi you"]), SMS),
        ("a.parquet", parquet(v1=[1], v2=["hi you"]), NAMED),
        ("a.data", '{"text": "hi you"}\n', TextRows.Config(path="b.data", format="jsonl")),
        ("a.log", '{"text": "hi you"}\n', TextRows.Config(path="b.jsonl")),
    ],
)
def test_targets_may_be_there_or_not(read, name, content, config):
    assert read(name, content, config) == [{"text": "hi you"}]


@pytest.mark.parametrize("content", ["Ann B\nran O\n\nBob B\n", "Ann\nran\n\nBob\n"])
def test_tokens_with_and_without_tags(read, content):
    assert read("a.conll", content, WORDS, ["words"]) == [{"words": "Ann ran"}, {"words": "Bob"}]


@pytest.mark.parametrize("content", ["1 Ann _ B\n2 ran _ O\n", "1 Ann\n2 ran\n"])
def test_tokens_of_a_treebank_are_where_they_were_in_training(read, content):
    assert read("a.conll", content, TREEBANK, ["words"]) == [{"words": "Ann ran"}]
    found = read("b.conll", "Ann\nran\n", TREEBANK, ["words"])
    assert found == ["wanted 2 columns, found 1"]


@pytest.mark.parametrize("content", ["yes\ta man\ta person\n", "a man\ta person\n"])
def test_two_texts(read, content):
    found = read("a.tsv", content, PAIRED, ["text1", "text2"])
    assert found == [{"text1": "a man", "text2": "a person"}]


def test_the_first_row_decides_and_rows_of_another_width_are_bad(read):
    found = read("a.tsv", "\nham\thi\nyou\n\xff\nspam\tme\n", SMS)
    assert found[1:3] == [{"text": "hi"}, "wanted 2 columns, found 1"]
    assert found[4] == {"text": "me"}
    alone = read("a.tsv", "hi\nyou\tthere\nyes\n", SMS)
    assert alone == [{"text": "hi"}, "wanted 1 column, found 2", {"text": "yes"}]


JSON_TOKENS = TextRows.Config(path="a.jsonl", columns={"tags": "ner", "words": "tokens"})


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("a.conll", "Ann B\nran O\n"),
        ("a.conll", "Ann\nran\n"),
        ("a.tsv", "Ann ran\n"),
        ("a.csv", "Ann ran\n"),
        ("a.csv", "id,tokens\n7,Ann ran\n"),
    ],
)
def test_the_names_of_json_may_be_those_of_a_header(read, name, content):
    assert read(name, content, JSON_TOKENS, ["words"]) == [{"words": "Ann ran"}]


def test_of_a_file_with_more_columns_and_no_names_none_is_guessed(read):
    found = read("a.tsv", "Ann ran\tB O\n", JSON_TOKENS, ["words"])
    assert found == ["wanted 1 column, found 2"]


def test_an_input_that_may_be_empty_may_be(read):
    config = TextRows.Config(
        path="a.tsv", columns=("label", "text", "dictionary"), optional=("dictionary",)
    )
    inputs = ["text", "dictionary"]
    assert read("a.tsv", "ham\thi\n", config, inputs) == [{"text": "hi", "dictionary": ""}]
    assert read("b.tsv", "ham\thi\t\n", config, inputs) == [{"text": "hi", "dictionary": ""}]


def test_what_is_said_of_the_file_holds(read):
    said = TextRows.Config(path="sms.tsv", columns={"text": 0, "prefix": 2})
    found = read("a.tsv", "hi\tham\toh\nyou\n", said, said=["columns"])
    assert found == [{"text": "hi", "prefix": "oh"}, {"text": "you", "prefix": ""}]
    placed = TextRows.Config(path="sms.tsv", columns={"text": 1}, header=True)
    with pytest.raises(DataError, match="Say where each column is by its name in the header"):
        read("a.tsv", "text\twanted\nhi\tyou\n", placed, said=["columns"])
    assert read("a.txt", JSON, SMS, form="jsonl") == [{"text": "hi you"}]
    other_names = read("a.tsv", "v1\tv2\nham\thi\n", WITH_HEADER, said=["header"])
    assert other_names == [{"text": "hi"}]
    without = TextRows.Config(path="sms.tsv", header=False)
    assert read("a.tsv", "text\nhi\n", without, said=["header"]) == [
        {"text": "text"},
        {"text": "hi"},
    ]


def test_more_columns_than_asked_for_are_bad_where_that_is_set(read):
    config = TextRows.Config(path="a.tsv", columns=("text",), extra_columns="error")
    assert read("a.tsv", "hi\nham\thi\n", config) == [{"text": "hi"}, "wanted 1 column, found 2"]
    wide = TextPairs.Config(path="a.tsv", extra_columns="error")
    assert read("a.tsv", "Go.\tVa !\n", wide, ["source"]) == [{"source": "Go."}]


def test_an_empty_file_has_no_rows(read):
    for config in (SMS, WITH_HEADER):
        assert read("a.tsv", "", config) == []


@pytest.mark.parametrize(
    ("content", "config", "named"),
    [("hi\nyou\n", WITH_HEADER, "header=false"), ("v1\nham\n", NAMED, "'columns={text: v1}'")],
)
def test_a_first_line_that_is_not_the_header_is_refused(read, content, config, named):
    with pytest.raises(DataError, match=rf"a\.tsv:1: wanted .*{named}"):
        read("a.tsv", content, config)
