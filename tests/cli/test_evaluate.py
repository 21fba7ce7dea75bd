"""What an evaluation writes to files."""

import json
from types import SimpleNamespace

from textmill.cli.main import main
from textmill.text.cells import ListCell


def test_rows_and_values_are_written_by_the_names_of_their_data(tmp_path, monkeypatch, capsys):
    rows = [{"labels": ListCell(["New York", "Rome"]), "prediction": "Rome", "score": 0.5}]
    values = {"loss": float("nan"), "accuracy": 0.5}
    found = SimpleNamespace(rows=rows, values=values, directions={}, details={}, remarks=[])
    monkeypatch.setattr("textmill.runs.load_run.evaluate", lambda *_, **__: {"valid_data": found})
    files = ["--predictions", str(tmp_path / "rows"), "--values", str(tmp_path / "values")]
    assert main(["evaluate", "run", *files]) == 0
    assert json.loads((tmp_path / "rows").read_text()) == {
        "data": "valid_data", "labels": ["New York", "Rome"], "prediction": "Rome", "score": 0.5,
    }  # fmt: skip
    written = json.loads((tmp_path / "values").read_text())
    assert written == {"valid_data": {"loss": "NaN", "accuracy": 0.5}}
    assert main(["evaluate", "run", "--values", str(tmp_path)]) == 2
    assert f"--values {tmp_path}: it is a folder." in capsys.readouterr().err


def test_a_file_may_be_named_by_itself(tmp_path, monkeypatch, capsys):
    asked = list[list[str]]()
    monkeypatch.chdir(tmp_path)
    (tmp_path / "new.csv").touch()
    monkeypatch.setattr(
        "textmill.runs.load_run.evaluate", lambda _, words, **__: asked.append(words) or {}
    )
    assert main(["evaluate", "run", "new.csv", "valid_data.header=true"]) == 0
    assert main(["evaluate", "run", "other.csv"]) == 0
    assert asked == [["valid_data.path=new.csv", "valid_data.header=true"], ["other.csv"]]
