"""``textmill predict``: files read by columns or by lines, and what a model of several asks for."""

import io
import json
import sys

import pyarrow as pa
import pyarrow.parquet
import pytest

import textmill
from tests.trained_run import library_run
from textmill.cli import predict
from textmill.cli.main import main
from textmill.exported.row_predictor import RowPredictor


class Asked(RowPredictor):
    """Answers each row with its question."""

    def answers(self, rows):
        return [row["question"] for row in rows]

    def check(self, row):
        assert row

    def answer_row(self, answer):
        return {"prediction": answer}


@pytest.fixture
def asked(tmp_path, monkeypatch):
    monkeypatch.setattr(predict, "load_predictor", lambda _: Asked(("question", "context")))
    path = tmp_path / "rows.txt"
    path.write_text(json.dumps({"question": "Who?", "context": "Rollo."}) + "\n")
    return str(path)


def test_a_model_of_several_columns_names_them_and_answers_with_their_format(asked, capsys):
    assert main(["predict", "run", asked]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("error: This model reads the columns question, context; a line of text")
    assert main(["predict", "run", asked, "--json", "--format", "jsonl"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "question": "Who?", "context": "Rollo.", "prediction": "Who?",
    }  # fmt: skip


GO, CAT = "Go.", "The cat sleeps."


@pytest.fixture(scope="module")
def expected():
    return [answer.text for answer in textmill.load(library_run())([GO, CAT])]


@pytest.fixture
def answered(tmp_path, capsys):
    """What the command says to a file of that name and content."""

    def use(name, content, *words):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        code = main(["predict", str(library_run()), str(path), "--device", "cpu", *words])
        out, err = capsys.readouterr()
        here = f"{tmp_path}/"
        return code, out.replace(here, "").splitlines(), err.replace(here, "")

    return use


def test_a_file_of_parquet_is_read_and_answered_as_json_lines(answered, expected, tmp_path):
    path = tmp_path / "made.parquet"
    pa.parquet.write_table(pa.table({"id": [1, 2], "source": [GO, CAT]}), path)
    code, out, err = answered("rows.parquet", path.read_bytes(), "--json")
    assert (code, err) == (0, "")
    rows = [json.loads(line) for line in out]
    assert [(row["source"], row["prediction"]) for row in rows] == [
        (GO, expected[0]),
        (CAT, expected[1]),
    ]
    assert all("score" in row and "id" not in row for row in rows)


def test_settings_say_how_a_file_is_read(answered, expected):
    swapped = f"?\t{GO}\n?\t{CAT}\n"
    assert answered("a.tsv", swapped, "columns={source: 1}") == (0, expected, "")
    assert answered("a.txt", swapped, "train_data.columns={source: 1}") == (0, expected, "")
    header = f"target\tsource\n{swapped}"
    assert answered("a.tsv", header) == (0, expected, "")
    other = f"to\tfrom\n{swapped}"
    words = ("valid_data.header=true", "columns={source: from}")
    assert answered("a.tsv", other, *words) == (0, expected, "")
    code, out, err = answered("a.tsv", swapped, "heder=true")
    assert (code, out) == (2, [])
    assert "Did you mean 'header'?" in err
    code, out, err = answered("a.tsv", swapped, "format=csv")
    assert (code, err) == (2, "error: format: is an option here, as --format csv.\n")


def test_rows_keep_their_place_and_errors_name_it_once(answered, expected):
    long = "The cat sleeps. " * 50
    content = f"{GO}\n\n{long}\nb".encode() + b"\xff\n" + f"{CAT}\n".encode()
    code, out, err = answered("a.tsv", content)
    assert (code, out) == (1, [expected[0], "", "", "", expected[1]])
    assert err.startswith("a.tsv:2: column 'source' is empty\n")
    code, out, _ = answered("a.tsv", content, "--json")
    assert json.loads(out[3]) == {
        "source": "b\\xff",
        "error": "a.tsv:4: bad UTF-8: 0xff at byte 1 of the line (invalid start byte)",
    }
    code, _, err = answered("a.txt", f"{GO}\n{long}\n")
    assert err.startswith("line 2: 'source' is longer than ")


@pytest.fixture
def piped(capsys, monkeypatch):
    """What the command says to what comes through a pipe."""

    def use(content, *words):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(content)))
        code = main(["predict", str(library_run()), *words, "--device", "cpu"])
        out, err = capsys.readouterr()
        return code, out.splitlines(), err

    return use


def test_a_pipe_has_lines_of_text_or_what_its_format_says(piped, expected):
    lines, pairs = f"{GO}\n{CAT}\n".encode(), f"{GO}\tVa !\n{CAT}\tLe chat dort.\n".encode()
    comma = f'{GO},Va !\n"{CAT}",\n'.encode()
    objects = "".join(json.dumps(row) + "\n" for row in ({"source": GO, "id": 7}, CAT)).encode()
    for content, *words in [
        (lines,),
        (lines, "--format", "text"),
        (b"\xef\xbb\xbf" + lines,),
        (pairs, "--format", "tsv"),
        (pairs, "columns={source: 0}"),
        (comma, "--format", "csv"),
        (b"target,source\n?," + GO.encode() + b"\n?," + CAT.encode() + b"\n", "--format", "csv"),
        (b"id\tSource\n1\t" + GO.encode() + b"\n2\t" + CAT.encode(), "--format", "tsv"),
        (objects, "--format", "jsonl"),
    ]:
        assert piped(content, *words) == (0, expected, "")


def test_lines_and_rows_may_be_in_another_encoding(piped, answered, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    lines, row = "Où est-il ?\n".encode("latin-1"), "7\tOù est-il ?\n".encode("latin-1")
    for found in (
        piped(lines, "-", "encoding=latin-1", "--json"),
        piped(lines, "--format", "text", "-", "encoding=latin-1", "--json"),
        answered("a.txt", lines, "encoding=latin-1", "--json"),
        answered("a.tsv", row, "encoding=latin-1", "columns={source: 1}", "--json"),
    ):
        code, (line,), err = found
        assert (code, err, json.loads(line)["source"]) == (0, "", "Où est-il ?")
    code, (line,), err = answered("a.tsv", row, "columns={source: 1}", "--json")
    assert (code, json.loads(line)["source"]) == (0, "Où est-il ?")
    row = row.replace(b"\xf9", b"\xff")  # a letter of no language: it may be damage
    code, out, err = answered("a.tsv", row, "columns={source: 1}", "--output", "o.jsonl")
    assert (code, out) == (1, ["o.jsonl: 1 row"])
    assert "are read by encoding=cp1252, if Windows or Excel wrote them." in err
    (kept,) = map(json.loads, (tmp_path / "o.jsonl").read_text().splitlines())
    assert (kept["column_0"], kept["source"]) == ("7", "O\\xff est-il ?")


def test_a_line_that_training_would_refuse_is_refused(piped):
    content = f"{GO}\n\n \na\0b\n\xff\n".encode("latin-1")
    code, out, err = piped(content)
    assert (code, len(out), out[1:]) == (1, 5, [""] * 4)
    assert err == (
        "line 2: the line is empty\n"
        "line 3: the line is empty\n"
        "line 4: NUL at byte 1 of the line\n"
        "line 5: bad UTF-8: 0xff at byte 0 of the line (invalid start byte)\n"
        "4 of 5 rows could not be answered. Rows that are not UTF-8 are read by encoding=cp1252, "
        "if Windows or Excel wrote them.\n"
    )
    _, out, _ = piped(
        b'{"source": "a\\u0000"}\n{"source": "a", "source": "b"}\n', "--json", "--format", "jsonl"
    )
    assert [json.loads(line)["error"].partition(": ")[2] for line in out] == [
        "'source': NUL at character 1",
        "the key 'source' is there twice",
    ]


def test_settings_without_rows_and_lines_with_them_are_refused(piped, capsys, monkeypatch):
    assert piped(b"a\n", "header=true", "--format", "text") == (
        *(2, []),
        "error: --format text: a line is the text of a row. Leave it out, or header=true.\n",
    )
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO()))
    monkeypatch.setattr(sys.stdin, "isatty", lambda: True, raising=False)
    assert main(["predict", str(library_run()), "header=true"]) == 2
    assert capsys.readouterr().err.startswith("error: header=true: says how columns are read; name")


def test_what_is_no_file_is_said_before_a_model_is_loaded(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(predict, "load_predictor", None)
    (tmp_path / "folder.tsv").mkdir()
    for name, why in [("none.tsv", "there is no such file"), ("folder.tsv", "it is a folder")]:
        assert main(["predict", str(library_run()), str(tmp_path / name)]) == 2
        assert capsys.readouterr().err == f"error: {tmp_path / name} cannot be read: {why}.\n"
