"""``textmill evaluate --predictions``: what the file of rows and answers holds."""

import json
from types import SimpleNamespace

from textmill.cli.evaluate import _write, _write_values
from textmill.cli.main import main
from textmill.text.cells import ListCell


def test_a_list_of_the_data_is_one_in_the_file_of_predictions(tmp_path):
    path = tmp_path / "rows.jsonl"
    rows = [{"labels": ListCell(["New York", "Rome"]), "prediction": "Rome", "score": 0.5}]
    _write(str(path), {"valid_data": SimpleNamespace(rows=rows)})
    assert json.loads(path.read_text()) == {
        "data": "valid_data",
        "labels": ["New York", "Rome"],
        "prediction": "Rome",
        "score": 0.5,
    }


def test_the_values_are_written_by_the_names_of_their_data(tmp_path):
    path = tmp_path / "values.json"
    found = {"valid_data": SimpleNamespace(values={"loss": float("nan"), "accuracy": 0.5})}
    _write_values(str(path), found)
    assert json.loads(path.read_text()) == {"valid_data": {"loss": "NaN", "accuracy": 0.5}}


def test_values_that_cannot_be_written_are_refused_before_anything_is_measured(tmp_path, capsys):
    assert main(["evaluate", "run", "--values", str(tmp_path)]) == 2
    assert (
        capsys.readouterr().err
        == f"error: --values {tmp_path}: it is a folder. Name a file in it.\n"
    )
