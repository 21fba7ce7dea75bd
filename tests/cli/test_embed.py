"""``textmill embed``: rows in, vectors out, to a terminal or a file; bad rows and none at all."""

import io
import json
import sys
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import textmill
from tests.recipes.local_data import write_data
from tests.runs.test_embedding import sentence_encoder
from textmill.cli.main import main
from textmill.inference.load_encoder import load_encoder
from textmill.runs.export import export

QUIET = ("trainer.max_steps=2", "reporters.console=false", "reporters.html=false")
TEXTS = ["the cat sat", "dogs bark at the moon " * 40, "films"]


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    sentence_encoder(tmp_path / "encoder", "mean")
    Path("texts.txt").write_text("".join(f"{text}\n" for text in TEXTS))
    return tmp_path


def piped(monkeypatch, text):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(text.encode())))


def vectors():
    return load_encoder("encoder").embed(TEXTS)


def test_lines_become_lines_with_their_vectors(place, capsys, monkeypatch):
    assert main(["embed", "--model", "encoder", "texts.txt"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["text"] for row in rows] == TEXTS
    assert [row["prediction"] for row in rows] == pytest.approx(vectors(), abs=1e-8)
    piped(monkeypatch, "the cat sat")
    assert main(["embed", "--model", "encoder"]) == 0
    (line,) = capsys.readouterr().out.splitlines()
    first = pytest.approx(rows[0]["prediction"], abs=1e-6)
    assert json.loads(line) == {"text": "the cat sat", "prediction": first}
    piped(monkeypatch, '{"text": "the cat sat", "id": 3}\n"films"\n')
    assert main(["embed", "--format", "jsonl", "-", "--model", "encoder"]) == 0
    one, two = map(json.loads, capsys.readouterr().out.splitlines())
    assert (one["id"], one["prediction"]) == (3, first)
    assert two["prediction"] == pytest.approx(rows[2]["prediction"], abs=1e-6)


def test_a_file_of_vectors_alone(place, capsys):
    assert main(["embed", "--model", "encoder", "texts.txt", "--output", "out.npy"]) == 0
    found = np.load("out.npy")
    assert (found.dtype, found.shape) == (np.dtype("<f4"), (3, 16))
    assert np.array_equal(found, vectors())
    assert capsys.readouterr() == ("out.npy: 3 rows\n", "")


def test_a_file_of_rows_and_vectors(place, capsys):
    rows = [{"id": number, "text": text} for number, text in enumerate(TEXTS)]
    pq.write_table(pa.Table.from_pylist(rows), "rows.parquet")
    Path("rows.jsonl").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    for suffix in ("parquet", "jsonl"):
        words = [f"rows.{suffix}", "--model", "encoder", "--output", f"{suffix}.parquet"]
        assert main(["embed", *words]) == 0
        table = pq.read_table(f"{suffix}.parquet")
        assert table.schema.field("prediction").type == pa.list_(pa.float32(), 16)
        assert table["id"].to_pylist() == [0, 1, 2]
        assert table["text"].to_pylist() == TEXTS
        assert np.array_equal(np.float32(table["prediction"].to_pylist()), vectors())
        assert table["error"].null_count == 3
    Path("rows.csv").write_text("id,body\n7,the cat sat\n8,films\n")
    words = ["header=true", "columns={text: body}", "--output", "csv.parquet"]
    assert main(["embed", "--model", "encoder", "rows.csv", *words]) == 0
    assert pq.read_table("csv.parquet")["body"].to_pylist() == ["the cat sat", "films"]


def test_a_bad_row_keeps_its_place(place, capsys):
    Path("rows.jsonl").write_text('{"text": "films"}\n{"text": " "}\n{"txt": ""}\n{"text": null}\n')
    assert main(["embed", "--model", "encoder", "rows.jsonl", "--output", "out.npy"]) == 1
    assert np.isnan(np.load("out.npy")).all(axis=1).tolist() == [False, True, True, True]
    err = capsys.readouterr().err.splitlines()
    assert err[0].startswith("rows.jsonl:2: column 'text' is empty")
    assert err[3] == "3 of 4 rows could not be answered: its vector is NaN."
    assert main(["embed", "--model", "encoder", "rows.jsonl", "--output", "out.parquet"]) == 1
    table = pq.read_table("out.parquet")
    assert [row is None for row in table["prediction"].to_pylist()] == [False, True, True, True]
    assert table["error"].to_pylist()[0] is None
    assert "no key 'text'" in table["error"].to_pylist()[2]
    Path("texts.txt").write_bytes(b"films\n\xff\n\n")
    capsys.readouterr()
    assert main(["embed", "--model", "encoder", "texts.txt"]) == 1
    found = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert ["error" in row for row in found] == [False, True, True]


def test_a_run_and_its_export(place, capsys):
    write_data("embedding/pairs/local")
    run = textmill.train("embedding/pairs/local", QUIET, run_dir="run").folder
    assert main(["embed", "run", "data/train.tsv", "--output", "out.parquet"]) == 0
    export(run, "onnx", out=Path("export"))
    assert main(["embed", "export", "data/train.tsv", "--output", "of_export.npy"]) == 0
    table = pq.read_table("out.parquet")
    assert table.column_names == ["text1", "text2", "prediction", "error"]
    assert np.load("of_export.npy") == pytest.approx(
        np.array(table["prediction"].to_pylist()), abs=1e-6
    )
    capsys.readouterr()
    Path("rows.jsonl").write_text("".join(f"{json.dumps(text)}\n" for text in TEXTS))
    assert main(["predict", "run", "rows.jsonl", "--json"]) == 0
    assert main(["embed", "run", "rows.jsonl"]) == 0
    one, two = np.array_split(capsys.readouterr().out.splitlines(), 2)
    assert one.tolist() == two.tolist()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ([], "Name the folder of a run or of an export, or a model with --model NAME."),
        (["--model", "encoder", "run", "texts.txt"], "One word too many: 'texts.txt'."),
        (["run", "--revision", "main"], "--revision: only a model that --model names takes it."),
        (["run", "--pooling", "max"], "--pooling: only a model that --model names takes it."),
        (["run", "--no-normalize"], "--normalize: only a model that --model names takes it."),
        (["--model", "encoder", "--checkpoint", "best"], "--checkpoint: only a run has such;"),
        (["--model", "./nowhere", "texts.txt"], "There is no folder ./nowhere."),
        (["--model", "encoder", "gone.txt"], "gone.txt cannot be read"),
        (["nowhere", "texts.txt"], "nowhere: there is no such folder"),
        (
            ["--model", "encoder", "texts.txt", "--output", "out.txt"],
            "Wanted .csv, .jsonl, .ndjson",
        ),
    ],
)
def test_what_cannot_be_is_said(words, said, place, capsys):
    assert main(["embed", *words]) == 2
    assert said in capsys.readouterr().err


def test_a_pretrained_folder_that_is_named_as_a_run_says_how(place, capsys):
    assert main(["embed", "encoder", "texts.txt"]) == 2
    said = "encoder is a pretrained model, no run: textmill embed --model encoder"
    assert said in capsys.readouterr().err
