"""The commands of pipelines, as they are typed."""

import csv
import io
import json
import sys

import pytest

from tests.pipelines.small_models import (
    REFERENCES,
    exported,
    extracts_run,
    mentions_run,
    reference_run,
    written_summaries_run,
)
from tests.pipelines.small_paper import paper
from tests.trained_run import library_run
from textmill.cli.main import main

TEXTS = [text for text, _ in REFERENCES]


@pytest.fixture
def parse(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "refs.txt").write_text("\n".join(TEXTS))
    model = str(reference_run())
    return lambda *words: main(["parse-references", *words, "--model", model])


def piped(monkeypatch, content):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BufferedReader(io.BytesIO(content))))


def test_each_reference_is_a_line(parse, capsys):
    assert parse("refs.txt") == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[2] == "<author>D. Fox.</author> <title>Old words.</title> <date>1984.</date>"
    assert len(lines) == 3
    assert parse("refs.txt", "refs.txt") == 0
    assert capsys.readouterr().out.splitlines() == [f"refs.txt: {line}" for line in lines] * 2


def test_json_has_all_that_is_known(parse, capsys, monkeypatch):
    piped(monkeypatch, "\n".join(TEXTS).encode())
    assert parse("--format", "json") == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [(row["file"], row["line"], row["text"]) for row in rows] == [
        ("-", number + 1, text) for number, text in enumerate(TEXTS)
    ]
    assert rows[2]["fields"] == {"author": "D. Fox.", "title": "Old words", "date": "1984"}


def test_a_table_has_a_column_for_each_field(parse, capsys, tmp_path):
    assert parse("refs.txt", "none.txt", "--output", "refs.csv") == 1
    with (tmp_path / "refs.csv").open(newline="") as file:
        rows = [*csv.DictReader(file)]
    place = ["file", "line", "page", "label"]
    fields = ["author", "booktitle", "date", "journal", "title"]
    assert [*rows[0]] == [*place, *fields, "score", "text", "error"]
    assert [row["title"] for row in rows] == ["Deep nets", "Fast trees", "Old words", ""]
    assert (rows[1]["line"], rows[1]["text"]) == ("2", TEXTS[1])
    assert rows[3]["error"] == "none.txt cannot be read: No such file or directory."


def test_a_bad_file_and_a_bad_line_leave_the_others(parse, capsys, monkeypatch, tmp_path):
    piped(monkeypatch, b"A. Lee. 1999.\n\xff\n")
    assert parse("none.txt", "refs.txt", "-", "--output", "out.jsonl") == 1
    told = capsys.readouterr()
    assert told.out == "out.jsonl: 6 results\n"
    assert told.err.splitlines() == [
        "none.txt cannot be read: No such file or directory.",
        "-:2: bad UTF-8: 0xff at byte 0 of the line (invalid start byte)",
        "2 of 6 could not be answered.",
    ]
    rows = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text().splitlines()]
    assert [row["file"] for row in rows] == ["none.txt", *["refs.txt"] * 3, "-", "-"]
    assert ["error" in row for row in rows] == [True, False, False, False, False, True]


def test_an_output_is_not_replaced_unasked_and_never_half_there(parse, capsys, tmp_path):
    assert parse("refs.txt", "--output", "out.txt") == 0
    whole = (tmp_path / "out.txt").read_text()
    assert whole.count("</author>") == 3
    assert parse("refs.txt", "--output", "out.txt") == 2
    assert "it is there already" in capsys.readouterr().err
    assert parse("refs.txt", "--output", "refs.txt", "--overwrite") == 2
    assert "a file that is read" in capsys.readouterr().err
    assert parse("refs.txt", "--output", "none/out.txt") == 2
    assert "no folder none" in capsys.readouterr().err
    assert parse("refs.txt", "--output", "out.txt", "--overwrite", "--format", "json") == 0
    assert (tmp_path / "out.txt").read_text()[0] == "{"
    files = sorted(path.name for path in tmp_path.iterdir() if path.is_file())
    assert files == ["out.txt", "refs.txt"]


def test_what_cannot_be_is_said_before_the_model_is_loaded(capsys, tmp_path, monkeypatch):
    monkeypatch.setenv("TEXTMILL_HOME", str(tmp_path))
    assert main(["parse-references", "header=true"]) == 2
    assert "has no settings" in capsys.readouterr().err
    assert main(["summarize", "a.txt"]) == 2
    assert "--model FOLDER" in capsys.readouterr().err
    assert main(["parse-references", "a.txt", "--overwrite"]) == 2
    assert "name one" in capsys.readouterr().err


def test_each_command_reads_a_paper(parse, capsys, tmp_path):
    (tmp_path / "paper.pdf").write_bytes(paper())
    assert parse("paper.pdf") == 0
    assert capsys.readouterr().out.count("<author>") == 3
    assert main(["find-datasets", "paper.pdf", "--model", str(mentions_run())]) == 0
    assert capsys.readouterr().out == "p. 1: CIFAR-10\np. 1: DBLP data\np. 2: CIFAR-10\n"
    words = ["--part", "all", "--sentences", "6", "--model", str(extracts_run())]
    assert main(["summarize", "paper.pdf", *words]) == 0
    assert "DBLP data is old." in capsys.readouterr().out


def test_papers_that_are_encrypted_are_read_with_their_password(
    parse, capsys, tmp_path, monkeypatch
):
    (tmp_path / "locked.pdf").write_bytes(paper(password="secret"))
    (tmp_path / "open.pdf").write_bytes(paper())
    assert parse("locked.pdf") == 2
    assert "locked.pdf: is encrypted and needs a password: give it with" in capsys.readouterr().err
    piped(monkeypatch, paper(password="secret"))
    assert parse("-") == 2
    assert "standard input: is encrypted and needs a password: give it" in capsys.readouterr().err
    assert parse("locked.pdf", "--password", "other") == 2
    assert "is encrypted, and its password is another" in capsys.readouterr().err
    assert parse("locked.pdf", "open.pdf", "refs.txt", "--password", "secret") == 0
    assert capsys.readouterr().out.count("<author>") == 9


def test_a_paper_without_references_is_told(parse, capsys, tmp_path):
    (tmp_path / "empty.txt").touch()
    assert parse("empty.txt") == 0
    assert capsys.readouterr().err == "empty.txt: nothing was found in it.\n"


@pytest.mark.parametrize(
    ("run", "said"),
    [
        (reference_run, "textmill parse-references paper.pdf --model {0}, or textmill"),
        (
            lambda: exported(written_summaries_run(), "ctranslate2"),
            "paper.pdf: wanted rows of text, found a PDF. A pipeline reads it:",
        ),
        (extracts_run, "paper.pdf: wanted rows of text, found a PDF. A pipeline reads it:"),
        (library_run, "paper.pdf: wanted text, found a PDF: make text of it first"),
    ],
    ids=["tagger", "export", "summarizer", "translator"],
)
def test_predict_names_the_pipeline_that_reads_a_pdf(run, said, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "paper.pdf").write_bytes(paper())
    assert main(["predict", str(run()), "paper.pdf"]) == 2
    assert said.format(run()) in capsys.readouterr().err
    piped(monkeypatch, paper())
    assert main(["predict", str(run())]) == 2
    assert "standard input: wanted" in capsys.readouterr().err
