"""``weft predict``: what a model of several columns asks for."""

import json

import pytest

from weft.cli import predict
from weft.cli.main import main
from weft.exported.rows import RowPredictor


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
    monkeypatch.setattr(predict, "_loaded", lambda _: Asked(("question", "context")))
    path = tmp_path / "rows.jsonl"
    path.write_text(json.dumps({"question": "Who?", "context": "Rollo."}) + "\n")
    return str(path)


def test_without_json_a_model_of_several_columns_names_it(asked, capsys):
    assert main(["predict", "run", asked]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err == (
        "error: This model reads the columns question, context; a line of text fills only one. "
        'Give JSON lines with --json, each such as {"question": "...", "context": "..."}.\n'
    )


def test_with_json_it_answers(asked, capsys):
    assert main(["predict", "run", asked, "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {
        "question": "Who?",
        "context": "Rollo.",
        "prediction": "Who?",
    }
