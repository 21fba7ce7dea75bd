"""Pipelines that begin with files of rows; that they resume is tested with all other verbs."""

import pyarrow as pa
import pytest

from textmill import data
from textmill.errors import DataError


def test_every_reader_gives_its_rows(tmp_path):
    path = tmp_path / "rows"
    path.write_text("en\tfr\na\tb\n", encoding="utf-8")
    chain = data.read_tsv(path, {"source": "en"}, header=True)
    assert list(chain.and_return()) == [{"source": "a"}]
    path.write_text('"a;1";b\n', encoding="utf-8")
    pair = data.read_csv(path, separator=";").map(lambda row: (row["source"], row["target"]))
    assert list(pair.and_return()) == [("a;1", "b")]
    path.write_text("# c\na X\nb Y\n\n", encoding="utf-8")
    assert list(data.read_conll(path, comment="#").and_return()) == [
        {"words": "a b", "tags": "X Y"}
    ]
    table = pa.table({"text": ["a", "b"]})
    with pa.ipc.new_stream(str(path), table.schema) as writer:
        writer.write_table(table)
    assert list(data.read_arrow(path, ["text"]).take(1).and_return()) == [{"text": "a"}]


def test_a_bad_row_is_an_error_with_its_place(tmp_path):
    path = tmp_path / "rows.jsonl"
    path.write_text('{"text": "a"}\n[]\n', encoding="utf-8")
    rows = iter(data.read_jsonl(path, ["text"]).and_return())
    assert next(rows) == {"text": "a"}
    with pytest.raises(DataError) as error:
        next(rows)
    wanted = f"read_jsonl: {path}:2: wanted an object, found a list."
    assert str(error.value) == wanted
