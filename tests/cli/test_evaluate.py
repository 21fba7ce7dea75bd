"""``weft evaluate --predictions``: what the file of rows and answers holds."""

import json
from types import SimpleNamespace

from weft.cli.evaluate import _write
from weft.text.cells import ListCell


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
