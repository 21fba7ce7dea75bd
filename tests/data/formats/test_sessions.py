"""Lists in cells of TSV and CSV, and sessions: rows with one value in a column become one row."""

import json
from itertools import groupby

import pytest

from textmill.data import text_pairs
from textmill.data.input_files import input_layout
from textmill.data.readers import read_rows
from textmill.data.text_rows import TextRows
from textmill.errors import DataError, UserError
from textmill.text.cells import unlisted


def plain(rows):
    return [{name: unlisted(cell) for name, cell in row.items()} for row in rows]


@pytest.fixture(params=[1 << 20, 0], ids=["in memory", "cached"])
def read(request, tmp_path, monkeypatch):
    """Reads lines of a file, whose rows are in memory or in the cache."""
    monkeypatch.setenv("TEXTMILL_CACHE", str(tmp_path / "cache"))
    monkeypatch.setattr(text_pairs, "HELD_BYTES", request.param)

    def make(lines, *, name="a.tsv", **settings):
        path = tmp_path / name
        path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return TextRows.Config(path=path, **settings).build()

    return make


TURNS = [("s1", "hi", "0"), ("s1", "how are you", "1"), ("s2", "bye", "0"), ("s3", "ok, no", "1")]


@pytest.mark.parametrize("suffix", [".tsv", ".csv", ".jsonl"])
def test_neighbouring_rows_of_a_session_are_one_row(read, suffix):
    names = ("session", "text", "label")
    write = {
        ".tsv": "\t".join,
        ".csv": lambda row: ",".join(f'"{cell}"' for cell in row),
        ".jsonl": lambda row: json.dumps(dict(zip(names, row, strict=True))),
    }[suffix]
    data = read(map(write, TURNS), name=f"a{suffix}", columns=names, group_by="session")
    wanted = [
        {"session": key, "text": [t for _, t, _ in turns], "label": [n for _, _, n in turns]}
        for key, turns in ((k, [*g]) for k, g in groupby(TURNS, key=lambda row: row[0]))
    ]
    assert plain(data.rows()) == wanted
    assert [*data.lines] == [1, 3, 4]
    assert data.place_of(1).endswith(f"a{suffix}:3")
    alone = read(map(write, TURNS), name=f"a{suffix}", columns=names)
    assert alone.fingerprint() != data.fingerprint()


def test_no_row_of_a_session_is_lost_silently(read):
    lines = ["a\tx", "\tq", "a\ty", "b\tz", "a\tw", "c\t", "c\tv"]
    data = read(lines, columns=("id", "text"), group_by="id", max_bad_rows=3)
    data.require(("text",))  # what a task reads; the session is needed, too
    assert plain(data.rows()) == [
        {"id": "a", "text": ["x", "y"]}, {"id": "b", "text": ["z"]}, {"id": "c", "text": ["v"]}
    ]  # fmt: skip
    assert [*data.lines] == [1, 4, 7]
    assert [(row.line, row.reason) for row in data.bad_rows] == [
        (2, "column 'id' is empty"),
        (5, "id 'a' was there before, and others since: wanted all rows of a session one after "
            "the other; sort the file by 'id'"),
        (6, "column 'text' is empty"),
    ]  # fmt: skip
    assert (data.count.good, data.count.bad, data.count.total) == (3, 3, 6)


def test_a_file_to_predict_has_sessions_as_the_training_data(tmp_path):
    path = tmp_path / "b.tsv"
    path.write_text("".join("\t".join(row) + "\n" for row in TURNS))
    config = TextRows.Config(path=path, columns=("id", "text", "label"), group_by="id")
    rows = [*read_rows(path, input_layout(path, config, ["text"]))]
    assert plain(rows)[0] == {"id": "s1", "text": ["hi", "how are you"]}
    assert len(rows) == 3
    with pytest.raises(UserError, match="group_by: wanted one of the columns"):
        _ = len(TextRows.Config(path=path, columns=("id", "text"), group_by="is").build())


@pytest.mark.parametrize("suffix", [".tsv", ".csv"])
def test_cells_of_lists_are_json(read, suffix):
    cells = ['["hi", "how, are you"]', '["say ""x"""]' if suffix == ".csv" else '["say \\"x\\""]']
    cells += ["[1, 2.5]", '"alone"', "[", '{"a": 1}', "[]", "", "[[1]]"]
    if suffix == ".csv":
        cells = ['"' + cell.replace('""', '"').replace('x"', 'x\\"').replace('say "', 'say \\"')
                 .replace('"', '""') + '"' for cell in cells]  # fmt: skip
    between = "\t" if suffix == ".tsv" else ","
    lines = [f"a{between}{cell}" for cell in cells]
    settings = {"columns": ("label", "text"), "lists": ("text",), "name": f"a{suffix}"}
    data = read(lines, **settings, max_bad_rows=5)
    texts = [["hi", "how, are you"], ['say "x"'], ["1", "2.5"], ["alone"]]
    assert [row["text"] for row in plain(data.rows())] == texts
    assert [row.line for row in data.bad_rows] == [5, 6, 7, 8, 9]
    reasons = [row.reason for row in data.bad_rows]
    assert reasons[0].startswith("column 'text': wanted a list as JSON: not JSON: ")
    assert "found an object" in reasons[1]
    assert reasons[2] == reasons[3] == "column 'text' is empty"
    with pytest.raises(DataError, match=rf"a{suffix}:5: column 'text': wanted a list as JSON"):
        _ = len(read(lines, **settings))
