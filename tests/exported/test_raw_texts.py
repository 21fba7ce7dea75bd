"""Texts as people type them to taggers: words as in the training data, offsets of the text."""

import json

import pytest
from starlette.testclient import TestClient

import textmill
from textmill.cli.main import main
from textmill.exported import load
from textmill.serving.app import Service, make_app
from textmill.serving.limits import Limits

ROWS = [
    ["We O", "met O", "Ann B-person", "in O", "New B-place", "York I-place", ". O"],
    ["Bob B-person", ", O", "come O", "to O", "Paris B-place", "! O"],
    ["Is O", "Ann B-person", "( O", "or O", "Bob B-person", ") O", "in O", "Paris B-place", "? O"],
]
TEXT = "Ann,  come to\tNew York."


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    folder = tmp_path_factory.mktemp("tagger")
    lines = "\n\n".join("\n".join(word.replace(" ", "\t") for word in row) for row in ROWS * 20)
    (folder / "train.conll").write_text(lines + "\n")
    words = [f"{name}.path={folder / 'train.conll'}" for name in ("train_data", "valid_data")]
    words += ["trainer.max_steps=60", "reporters.console=false", "reporters.html=false"]
    words += ["trainer.export=[onnx]", "optimizer.lr=0.02"]
    return textmill.train("tagging/ner/local", words, run_dir=folder / "run").folder


def test_words_are_those_of_the_data_and_offsets_those_of_the_text(run, tmp_path, capsys):
    itself, export = textmill.load(run), load(run / "export" / "onnx")
    for model in (itself, export):
        answer = model(TEXT)
        assert answer.words == ("Ann", ",", "come", "to", "New", "York", ".")
        assert {answer.tags[n] for n in (1, 6)} == {"O"}
        spans = [(span.kind, span.text, span.start, span.end) for span in answer.spans]
        assert spans == [("person", "Ann", 0, 3), ("place", "New York", 14, 22)]
        assert all(TEXT[span.start : span.end] == span.text for span in answer.spans)
        assert model([TEXT, "Ann"])[0].row() == answer.row()
        listed = model([[*answer.words]])[0]  # as its words, it answers the same
        assert (listed.tags, listed.divided) == (answer.tags, None)
        assert model("Ann , come .").words == ("Ann", ",", "come", ".")
    wanted = answer.row()
    assert wanted["tokens"] == [*answer.words]
    (tmp_path / "texts.txt").write_text(f"{TEXT}\n")
    capsys.readouterr()
    assert main(["predict", str(run), str(tmp_path / "texts.txt"), "--json"]) == 0
    assert json.loads(capsys.readouterr().out) == {"words": TEXT, **wanted}
    service = Service(predictor=export, name="m", limits=Limits())
    with TestClient(make_app(service)) as client:
        assert client.post("/predict", json=[TEXT]).json() == [wanted]
        schema = client.get("/openapi.json").json()["components"]["schemas"]["TaggedRow"]
        assert "tokens" not in schema["required"]
    service.batcher.close()


def test_words_of_a_file_stay_as_they_are(run, tmp_path, capsys):
    (tmp_path / "new.conll").write_text("Yorkers.\tO\nmet\tO\n\nParis!\tO\n")
    assert main(["predict", str(run), str(tmp_path / "new.conll"), "--json"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [len(row["prediction"].split()) for row in rows] == [2, 1]
