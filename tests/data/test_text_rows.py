"""Rows with columns of any names: sentences of words with a tag each, in CoNLL and JSON lines."""

import json

import pyarrow
import pyarrow.parquet
import pytest

from textmill.data.bad_rows import BadRowsError
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.text.columns.numbers import NumberCheck

CONLL = "Al NNP B\nZaman NNP I\n\nsays VBZ O\n"
ROWS = [{"words": "Al Zaman", "tags": "B I"}, {"words": "says", "tags": "O"}]


def written(tmp_path, name, text, **settings):
    path = tmp_path / name
    path.write_text(text, encoding="utf-8")
    return TextRows.Config(path=path, **settings).build()


@pytest.mark.parametrize(
    ("name", "settings"),
    [
        ("a.conll", {"columns": {"words": 0, "tags": -1}}),
        ("a.tsv", {"columns": {"words": 0, "tags": 2}, "format": "conll"}),
    ],
)
def test_a_sentence_of_a_conll_file_is_a_row(tmp_path, name, settings):
    assert list(written(tmp_path, name, CONLL, **settings)) == ROWS


def test_names_alone_are_the_first_columns_of_a_conll_file(tmp_path):
    rows = list(written(tmp_path, "a.conll", CONLL, columns=("words", "pos")))
    assert rows[0] == {"words": "Al Zaman", "pos": "NNP NNP"}


def test_a_list_of_words_in_json_lines_has_spaces_between(tmp_path):
    lines = '{"tokens": ["Al", "Zaman"], "tags": ["B", "I"]}\n{"tokens": "says", "tags": ["O"]}\n'
    columns = {"words": "tokens", "tags": "tags"}
    assert list(written(tmp_path, "a.jsonl", lines, columns=columns)) == ROWS
    bad = '{"tokens": ["Al", null], "tags": ["B", "I"]}\n'
    with pytest.raises(DataError, match="'tokens': wanted a list of texts or numbers, found null"):
        written(tmp_path, "b.jsonl", bad, columns=columns).read()
    empty = '{"tokens": [], "tags": []}\n'
    with pytest.raises(DataError, match="column 'words' is empty"):
        written(tmp_path, "c.jsonl", empty, columns=columns).read()


@pytest.mark.parametrize("name", ["a.tsv", "a.csv", "a.jsonl"])
def test_a_column_that_is_optional_may_be_empty(tmp_path, name):
    lines = {
        "a.tsv": "x\t\twake me\nx\tO O\twake me\n",
        "a.csv": "x,,wake me\nx,O O,wake me\n",
        "a.jsonl": '{"label": "x", "slots": "", "text": "wake me"}\n'
        '{"label": "x", "slots": "O O", "text": "wake me"}\n',
    }[name]
    columns = ("label", "slots", "text")
    rows = list(written(tmp_path, name, lines, columns=columns, optional=("slots",)))
    assert [row["slots"] for row in rows] == ["", "O O"]
    with pytest.raises(DataError, match="column 'slots' is empty"):
        written(tmp_path, name, lines, columns=columns).read()
    with pytest.raises(
        UserError, match=r"wanted names of columns \(label, slots, text\), found 'a'"
    ):
        written(tmp_path, name, lines, columns=columns, optional=("a",))


def test_what_is_no_token_of_a_conll_file_is_left_out_and_said(tmp_path, caplog):
    caplog.set_level("INFO", logger="textmill")
    columns = {"words": 0, "tags": -1}
    text = f"-DOCSTART- -X- O\n\n# text = Al Zaman\n{CONLL}"
    data = written(tmp_path, "a.conll", text, columns=columns)
    assert list(data) == ROWS
    data.read()
    assert caplog.messages == [f"{tmp_path / 'a.conll'}: 2 lines are no tokens: left out."]


NAMED = {"a.tsv": {"header": True}, "a.csv": {"header": True}, "a.jsonl": {}, "a.parquet": {}}


@pytest.mark.parametrize("name", NAMED)
def test_a_column_that_the_file_does_not_have_is_refused_though_no_task_reads_it(tmp_path, name):
    rows = [{"text": f"t {n}", "label": "ab"[n % 2], "stars": str(n)} for n in range(4)]
    write_rows(tmp_path / name, rows)
    wrong = {"text": "text", "label": "label", "stars": "stras"}
    config = {"path": tmp_path / name, "columns": wrong, **NAMED[name]}
    data = TextRows.Config(**config).build()
    data.require(["text", "label"])
    with pytest.raises(DataError, match="'stras'") as caught:
        data.read()
    assert "columns={text: text, label: label, stars: stars}" in str(caught.value)
    good = TextRows.Config(**{**config, "columns": {**wrong, "stars": "stars"}}).build()
    good.require(["text", "label"])
    assert [row["stars"] for row in good.rows()] == ["0", "1", "2", "3"]


def write_rows(path, rows):
    if path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(rows), path)
    elif path.suffix == ".jsonl":
        path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    else:
        between = "\t" if path.suffix == ".tsv" else ","
        lines = [[*rows[0]], *([*row.values()] for row in rows)]
        path.write_text("".join(between.join(line) + "\n" for line in lines))


@pytest.mark.parametrize("held", [True, False])
@pytest.mark.parametrize("name", NAMED)
def test_a_row_that_does_not_pass_the_check_of_its_task_is_a_bad_row(
    tmp_path, name, held, monkeypatch
):
    monkeypatch.setenv("TEXTMILL_HOME", str(tmp_path))
    if not held:
        monkeypatch.setattr("textmill.data.text_pairs.HELD_BYTES", 0)
    scores = ["1", "2.5", "n/a", "7", "4"]
    rows = [{"text": f"t {n}", "score": score} for n, score in enumerate(scores)]
    write_rows(tmp_path / name, rows)
    config = {"path": tmp_path / name, "columns": ["text", "score"], **NAMED[name]}

    def read(allowed):
        data = TextRows.Config(**config, max_bad_rows=allowed).build()
        data.check_rows(NumberCheck("score", span=(0, 5)))
        return data.read()

    with pytest.raises(BadRowsError, match=r"2 of 5 rows are bad, and 1 are allowed") as caught:
        read(1)
    assert [bad.reason for bad in caught.value.bad_rows] == [
        "column 'score': wanted a number, found 'n/a'",
        "column 'score': wanted a number from 0 to 5, found '7'",
    ]
    data = read(2)
    assert [row["score"] for row in data.rows()] == ["1", "2.5", "4"]
    plain = TextRows.Config(**config).build().read()
    assert len(plain.rows()) == 5, "an index that was made with a check is not taken"
    assert plain.fingerprint() == data.fingerprint(), "a task's settings are none of the data's"
