"""``textmill predict --output``: a whole file or none, in bounded memory, whatever happens."""

import codecs
import os
import signal
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from tests.cli.test_predict_formats import rows_of
from textmill.cli import predict, progress_line
from textmill.cli.main import main
from textmill.errors import DataError
from textmill.exported.row_predictor import RowPredictor
from textmill.runs import prediction_file


class Together(RowPredictor):
    """Answers each row with the first of those that are answered together, and their number."""

    data = ()

    def __init__(self):
        super().__init__(["text"])

    def answers(self, rows):
        return [f"{row['text']}: one of {len(rows)} from {rows[0]['text']}" for row in rows]

    def check(self, row):
        if "bad" in row["text"]:
            raise DataError("it is bad")

    def answer_row(self, answer):
        return {"prediction": answer, "length": len(answer), "score": len(answer) / 3}


def command(*words, to="out.csv"):
    return main(["predict", "run", "rows.txt", "--output", str(to), "--format", "text", *words])


@pytest.fixture
def place(tmp_path, monkeypatch):
    """A folder with a file of 2,000 rows, one in nine bad, and a predictor in a run's place."""
    monkeypatch.chdir(tmp_path)
    rows = ("bad" if n % 9 == 5 else f"row {n}" for n in range(2000))
    Path("rows.txt").write_text("".join(f"{row}\n" for row in rows))
    Path("run").mkdir()
    Path("run", "export.json").write_text("{}")
    monkeypatch.setattr(predict, "load_predictor", lambda _: Together())
    return tmp_path


@pytest.mark.parametrize("to", ["out.csv", "out.jsonl", "out.parquet", "out.xlsx"])
def test_a_file_has_all_rows_and_bad_ones_in_their_places(place, capsys, to):
    assert command(to=to) == 1
    said = capsys.readouterr()
    assert said.out == f"{to}: 2,000 rows\n"
    assert said.err == "222 of 2,000 rows could not be answered: the column 'error' says why.\n"
    rows = rows_of(Path(to))
    assert [row["text"] for row in rows] == Path("rows.txt").read_text().splitlines()
    assert [number for number, row in enumerate(rows) if row["error"]] == [*range(5, 2000, 9)]
    assert rows[0]["prediction"] == "row 0: one of 228 from row 0"
    if to != "out.csv":
        assert (rows[0]["score"], rows[0]["length"]) == (28 / 3, 28)
    assert {path.name for path in place.iterdir()} == {"rows.txt", "run", to}


@pytest.mark.parametrize("language", ["C", "de_DE"])
def test_csv_for_excel_has_a_mark_and_the_separator_of_the_language(place, monkeypatch, language):
    point = {"decimal_point": "," if language == "de_DE" else "."}
    monkeypatch.setattr(prediction_file.locale, "localeconv", lambda: point)
    assert command("--excel") == 1
    mark, _, rest = Path("out.csv").read_bytes().partition(b"text")
    assert mark == codecs.BOM_UTF8
    assert rest.startswith({"C": b",prediction,", "de_DE": b";prediction;"}[language])
    first = rest.splitlines()[1]
    assert first.endswith({"C": b",9.333333333333334,", "de_DE": b";9,333333333333334;"}[language])
    assert command("--excel", to="out.jsonl") == 2


@pytest.mark.parametrize("moment", ["answering", "writing"])
def test_what_is_killed_leaves_no_file_and_begins_anew(place, monkeypatch, moment):
    assert command() == 1
    expected = Path("out.csv").read_bytes()
    Path("out.csv").unlink()

    def die(*_):
        os.kill(os.getpid(), signal.SIGKILL)

    class Dying(Together):
        def answers(self, rows):
            return die() if {"text": "row 1200"} in rows else super().answers(rows)

    if (child := os.fork()) == 0:
        if moment == "answering":
            predict.load_predictor = lambda _: Dying()
        else:
            prediction_file.HashingFile.close = die
        os._exit(command())
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    assert not Path("out.csv").exists()
    assert command() == 1
    assert Path("out.csv").read_bytes() == expected
    assert {path.name for path in place.iterdir()} == {"rows.txt", "run", "out.csv"}


def test_an_output_that_is_there_is_not_replaced_unasked(place, monkeypatch, capsys):
    Path("out.csv").write_text("mine")
    assert command() == 2
    assert capsys.readouterr().err.startswith("error: --output out.csv: it is there already. Give")
    monkeypatch.setattr(Together, "check", None)
    assert command("--overwrite") == 1
    assert Path("out.csv").read_text() == "mine"
    monkeypatch.setattr(Together, "check", lambda *_: None)
    assert command("--overwrite") == 0
    assert len(Path("out.csv").read_text().splitlines()) == 2001


def test_a_file_that_changes_meanwhile_is_refused(place, monkeypatch, capsys):
    rows = [{"text": f"row {n}"} for n in range(300)]
    pq.write_table(pa.Table.from_pylist(rows), "rows.parquet")

    class Changing(Together):
        def answers(self, asked):
            pq.write_table(pa.Table.from_pylist(rows[:200]), "other.parquet")
            Path("other.parquet").rename("rows.parquet")
            return super().answers(asked)

    monkeypatch.setattr(predict, "load_predictor", lambda _: Changing())
    monkeypatch.setattr(Together, "data", {"path": "rows.parquet", "columns": ["text"]})
    assert main(["predict", "run", "rows.parquet", "--output", "out.csv"]) == 2
    assert capsys.readouterr().err.startswith("error: The file that is read was changed while its")
    assert not Path("out.csv").exists()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output", "out.txt"], "--output out.txt: its suffix says how answers are written."),
        (["--output", "none/out.csv"], "--output none/out.csv: there is no folder none. Make it"),
        (["--output", "a.csv"], "--output a.csv: it is a folder. Name a file in it."),
        (["--output", "rows.csv", "--overwrite"], "--output rows.csv: it is a file that is read."),
        (["--overwrite"], "--overwrite: is about the file of --output; name one, or leave it out."),
    ],
)
def test_what_cannot_be_written_is_said_before_a_model_is_loaded(
    place, monkeypatch, capsys, words, said
):
    monkeypatch.setattr(predict, "load_predictor", None)
    (place / "a.csv").mkdir()
    (place / "rows.csv").write_text("text\n")
    assert main(["predict", "run", "rows.csv", *words]) == 2
    assert capsys.readouterr().err.startswith(f"error: {said}")


def test_a_terminal_shows_rows_rate_and_time_left(place, monkeypatch, capsys):
    monkeypatch.setattr(progress_line, "SECONDS_BETWEEN", 0)
    command()
    assert "rows/s" not in capsys.readouterr().err
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    command("--overwrite")
    said = capsys.readouterr().err
    assert "512 rows · " in said
    assert "rows/s · eta 1s" in said
    assert "writing out.csv" in said
