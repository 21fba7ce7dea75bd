"""``textmill predict --output``: every format in and out, with all columns."""

import csv
import io
import json
import sys
from datetime import datetime
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import python_calamine

from tests.trained_run import library_run
from textmill.cli.main import main

GO, CAT = "Go.", "The cat sleeps."


def rows_of(path):
    """The rows of an output, as Python has them."""
    match path.suffix:
        case ".csv":
            with path.open(newline="", encoding="utf-8") as file:
                return list(csv.DictReader(file))
        case ".parquet":
            return pq.read_table(path).to_pylist()
        case ".xlsx":
            book = python_calamine.load_workbook(path)
            names, *rows = book.get_sheet_by_index(0).to_python()
            return [dict(zip(names, row, strict=True)) for row in rows]
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@pytest.fixture
def answered(tmp_path, capsys, monkeypatch):
    """What the command writes of a file of that name and content, of a pipe where it has none."""

    def use(name, content, *words, to="out.jsonl", run=None):
        content = content if isinstance(content, bytes) else content.encode()
        monkeypatch.chdir(tmp_path)
        if name == "-":
            monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        else:
            Path(name).write_bytes(content)
        command = ["predict", str(run or library_run()), name, "--output", to, "--device", "cpu"]
        code = main([*command, "--overwrite", *words])
        left = {path.name for path in tmp_path.iterdir()} - {".textmill"}
        assert left >= {to}
        assert not [each for each in left if "part" in each or "new" in each]
        said = capsys.readouterr()
        return code, rows_of(Path(to)), said.out, said.err

    return use


ROWS = [{"id": "1", "source": GO, "note": "a, b"}, {"id": "2", "source": CAT, "note": 'é\n"x"'}]
SQUAD = {"title": "T", "context": CAT, "qas": [{"id": "7", "question": GO}]}


def table(rows, separator=","):
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0], delimiter=separator, lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)
    return text.getvalue()


def arrow(rows, *, feather=False):
    sink, made = io.BytesIO(), pa.Table.from_pylist(rows) if isinstance(rows, list) else rows
    if feather:
        with pa.ipc.new_file(sink, made.schema) as writer:
            writer.write_table(made)
    else:
        pq.write_table(made, sink, row_group_size=1)
    return sink.getvalue()


NAMED = ("columns={source: source}",)
READ = {
    "a.csv": (table(ROWS), NAMED, ROWS),
    "semicolons.csv": (table(ROWS, ";"), (*NAMED, "delimiter=;"), ROWS),
    "a.tsv": (
        f"id\tsource\n1\t{GO}\n2\t{CAT}\tmore\n",
        NAMED,
        [{"id": "1", "source": GO}, {"id": "2", "source": CAT, "column_2": "more"}],
    ),
    "pairs.tsv": (
        f"{GO}\tVa !\n{CAT}\tLe chat.\n",
        (),
        [{"source": GO, "target": "Va !"}, {"source": CAT, "target": "Le chat."}],
    ),
    "places.tsv": (
        f"1\t{GO}\n2\t{CAT}\n",
        ("columns={source: 1}",),
        [{"column_0": "1", "source": GO}, {"column_0": "2", "source": CAT}],
    ),
    "twice.csv": (
        f"a,,a,source\n1,2,3,{GO}\n",
        NAMED,
        [{"a": "1", "column_1": "2", "a_2": "3", "source": GO}],
    ),
    "a.jsonl": (
        "".join(
            json.dumps(row) + "\n"
            for row in ({"source": GO, "n": 1.5, "tags": ["a"]}, {"source": CAT, "b": None})
        ),
        (),
        [{"source": GO, "n": 1.5, "tags": ["a"]}, {"source": CAT, "b": None}],
    ),
    "a.conll": (
        "Go\tX\tO\n.\tY\tO\n\nThe\tX\tO\ncat\tX\tO\nsleeps\tX\tO\n.\tY\tO\n",
        ("columns={source: 0, tags: -1}",),
        [
            {"source": "Go .", "column_1": "X Y", "tags": "O O"},
            {"source": "The cat sleeps .", "column_1": "X X X Y", "tags": "O O O O"},
        ],
    ),
    "a.json": (
        json.dumps({"data": [{"title": "T", "paragraphs": [SQUAD]}]}),
        ("columns={source: question}",),
        [{"title": "T", "context": CAT, "impossible": "false", "id": "7", "question": GO}],
    ),
    "a.parquet": (arrow(ROWS), (), ROWS),
    "a.feather": (arrow(ROWS, feather=True), (), ROWS),
    "lines.txt": (f"{GO}\n{CAT}\n", (), [{"source": GO}, {"source": CAT}]),
    "-": (f"{GO}\n{CAT}\n", (), [{"source": GO}, {"source": CAT}]),
}


@pytest.mark.parametrize("name", READ)
def test_all_columns_of_every_format_are_kept_and_answers_stand_beside_them(answered, name):
    content, words, rows = READ[name]
    code, found, out, err = answered(name, content, *words)
    assert (code, err, out) == (0, "", f"out.jsonl: {len(rows)} row{'s' * (len(rows) > 1)}\n")
    added = ["prediction", "score", "error"]
    assert [list(row)[-3:] for row in found] == [added] * len(rows)
    assert [{k: v for k, v in row.items() if k not in added} for row in found] == rows
    assert all(row["prediction"] and row["score"] < 0 and row["error"] is None for row in found)


@pytest.mark.parametrize("to", ["out.csv", "out.jsonl", "out.ndjson", "out.parquet"])
def test_a_row_that_is_bad_is_an_error_row_in_its_place(answered, to):
    long = "The cat sleeps. " * 50
    content = f"id,source\n1,{GO}\n2,\n3,{long}\n4,b".encode() + b"\xff\n" + f"5,{CAT}\n".encode()
    code, found, out, err = answered("a.csv", content, *NAMED, to=to)
    assert (code, out) == (1, f"{to}: 5 rows\n")
    assert err.startswith("3 of 5 rows could not be answered: the column 'error' says why. Rows")
    assert [row["error"] or None for row in found] == [
        None, "a.csv:3: column 'source' is empty",
        "a.csv:4: 'source' is longer than the 64 tokens the model takes.",
        "a.csv:5: bad UTF-8: 0xff at byte 3 of the line (invalid start byte)", None,
    ]  # fmt: skip
    assert [row["id"] or None for row in found] == ["1", "2", "3", "4", "5"]
    assert [bool(row["prediction"]) for row in found] == [True, False, False, False, True]
    assert found[2]["source"] == long


def test_values_have_a_form_that_each_format_can_hold(answered):
    rows = [
        {"source": GO, "n": 1, "mixed": "a", "big": 2**53 + 1, "list": [1, None], "none": None},
        {"source": CAT, "n": 1.5, "mixed": {"b": [True]}, "big": 0.5, "list": [], "odd": "\ud800"},
        {"source": GO, "n": True, "huge": 2**70, "empty": {}, "flag": False},
    ]
    content = "".join(json.dumps(row) + "\n" for row in rows)
    _, found, *_ = answered("a.jsonl", content, to="out.parquet")
    schema = pq.read_schema("out.parquet")
    kinds = {name: str(schema.field(name).type) for name in schema.names}
    assert kinds == {
        **{"source": "string", "n": "string", "mixed": "string", "big": "string"},
        **{"list": "list<element: int64>", "none": "string", "odd": "string", "huge": "string"},
        **{"empty": "string", "flag": "bool", "prediction": "string", "score": "double"},
        "error": "string",
    }
    assert [row["n"] for row in found] == ["1", "1.5", "true"]
    assert [row["mixed"] for row in found] == ["a", '{"b": [true]}', None]
    assert [row["list"] for row in found] == [[1, None], [], None]
    assert [row["big"] for row in found] == [str(2**53 + 1), "0.5", None]
    assert found[1]["odd"] == "\\ud800"
    assert found[2]["huge"] == str(2**70)
    _, found, *_ = answered("a.jsonl", content, to="out.csv")
    assert [row["list"] for row in found] == ["[1, null]", "[]", ""]
    assert [row["flag"] for row in found] == ["", "", "false"]
    assert [row["mixed"] for row in found] == ["a", '{"b": [true]}', ""]
    _, found, *_ = answered("a.jsonl", content, to="out.jsonl")
    assert [{k: row[k] for k in one} for row, one in zip(found, rows, strict=True)] == rows


def test_columns_of_parquet_keep_their_types(answered):
    made = pa.table(
        {
            "source": pa.array([GO, CAT]).dictionary_encode(),
            "when": pa.array([0, 1_000_000_001], pa.timestamp("ns")),
            "small": pa.array([1, None], pa.int8()),
            "part": pa.array([0.1, 0.5], pa.float32()),
            "raw": pa.array([b"a\xff", b""], pa.binary()),
        },
        metadata={"mine": "kept"},
    )
    sink = io.BytesIO()
    pq.write_table(made, sink)
    _, found, *_ = answered("a.parquet", sink.getvalue(), to="out.parquet")
    schema = pq.read_schema("out.parquet")
    assert [schema.field(name).type for name in made.schema.names] == made.schema.types
    assert schema.metadata[b"mine"] == b"kept"
    assert [row["small"] for row in found] == [1, None]
    _, found, *_ = answered("a.parquet", sink.getvalue(), to="out.csv")
    assert [(row["when"], row["part"], row["raw"], row["small"]) for row in found] == [
        ("1970-01-01 00:00:00.000000000", "0.1", "a\\xff", "1"),
        ("1970-01-01 00:00:01.000000001", "0.5", "", ""),
    ]
    when = pa.table({"source": [GO], "at": [{"day": datetime(2026, 1, 2)}]})
    pq.write_table(when, sink := io.BytesIO())
    _, found, *_ = answered("b.parquet", sink.getvalue(), to="out.jsonl")
    assert found[0]["at"] == {"day": "2026-01-02 00:00:00"}


@pytest.mark.parametrize("to", ["out.csv", "out.jsonl", "out.parquet"])
def test_a_column_that_the_rows_have_too_keeps_its_values(answered, to):
    rows = [{"source": GO, "score": "mine", "error": "", "prediction": "x", "prediction_2": "y"}]
    _, found, _, err = answered("a.csv", table(rows), *NAMED, to=to)
    kept = {name: found[0][name] for name in rows[0]}
    assert kept == rows[0]
    assert list(found[0])[-3:] == ["prediction_3", "score_2", "error_2"]
    assert float(found[0]["score_2"]) < 0
    assert err.splitlines()[1] == (
        "The rows have a column 'score' of their own: the answers' is 'score_2'."
    )


def test_a_file_without_rows_has_columns(answered):
    for to in ("out.csv", "out.parquet"):
        assert answered("a.csv", "id,source\n", *NAMED, to=to)[:2] == (0, [])
    assert pq.read_schema("out.parquet").names == ["id", "source", "prediction", "error"]
    assert Path("out.csv").read_text() == "id,source,prediction,error\n"
    schema = pa.schema([("id", pa.int8()), ("source", pa.string())])
    for feather in (False, True):
        name = "a.feather" if feather else "b.parquet"
        assert (
            answered(name, arrow(schema.empty_table(), feather=feather), to="out.parquet")[0] == 0
        )
        found = pq.read_schema("out.parquet")
        assert (found.names[:2], found.field("id").type) == (["id", "source"], pa.int8())
    assert answered("a.jsonl", "", to="out.jsonl")[:2] == (0, [])
