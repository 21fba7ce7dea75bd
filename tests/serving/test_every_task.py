"""Each kind of answer over HTTP: what the predictor gives, of the type that the server says."""

import json

import pytest
from pydantic import TypeAdapter
from starlette.testclient import TestClient

import textmill
from tests.recipes.local_data import short, write_data
from textmill.exported.row_predictor import AnswerOptions
from textmill.inference.export.compare import difference
from textmill.serving.app import Service, make_app
from textmill.serving.examples import examples_of
from textmill.serving.limits import Limits

KINDS = {
    "classification/ngrams/local": "ClassifiedRow", "embedding/pairs/local": "EmbeddedRow",
    "joint/bilstm/local": "FrameRow", "bert/pretraining/local": "FilledRow",
    "language/transformer/local": "ContinuedRow", "pairs/classification/local": "ClassifiedRow",
    "pairs/ranking/local": "RankedRow", "parsing/top/local": "TranslatedRow",
    "question/drqa/local": "FoundAnswerRow", "regression/ngrams/local": "EstimatedRow",
    "tagging/bilstm/local": "TaggedRow", "tagging/ner/local": "TaggedRow",
    "trees/bilstm/local": "ParsedRow", "trees/rnng/local": "ParsedRow",
}  # fmt: skip
LIKE = {"pairs/classification/local", "tagging/bilstm/local", "trees/rnng/local"}
"""Of the kinds of others."""
OPTIONS = {
    "parsing/top/local": {"n_best", "beam_size"}, "language/transformer/local": {"n_best"},
    "bert/pretraining/local": {"n_best"}, "trees/rnng/local": {"beam_size"},
    "classification/ngrams/local": {"n_best", "threshold", "explain"},
    "pairs/classification/local": {"n_best", "threshold", "explain"},
    "joint/bilstm/local": {"explain"}, "pairs/ranking/local": {"explain"},
    "regression/ngrams/local": {"explain"},
}  # fmt: skip
BF16 = 0.1
"""How far numbers of answers may be off in bfloat16, which has 8 bits: scores of texts are sums."""
TEXTS = ["wake me at [MASK]", "Rollo met Bob and led the [MASK]", "wake [MASK]"]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.slow if name in LIKE else ()) for name in KINDS],
)
def test_the_server_answers_as_the_predictor_does(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    settings = write_data(name)
    words = [*short(name), "reporters.console=false", "reporters.html=false"]
    words += ["task.decoding.max_length_a=0"] * ("decoding" in settings["task"])
    words += ["task.decoding.max_length_b=5"] * ("decoding" in settings["task"])
    folder = textmill.train(name, words, run_dir="run").folder
    predictor = textmill.load(folder)
    rows = [dict.fromkeys(predictor.columns, text) for text in TEXTS]
    examples = examples_of(folder, predictor)
    assert all(set(row) == set(predictor.columns) for row in examples)
    service = Service(predictor=predictor, name="m", limits=Limits(), examples=examples)
    with TestClient(make_app(service)) as client:
        answers = client.post("/predict", json=rows).json()
        wanted = [answer for _, answer in predictor.answered(rows)]
        assert answers == json.loads(json.dumps(wanted))
        assert client.post("/predict", json=rows[0]).json().keys() == answers[0].keys()
        TypeAdapter(list[predictor.answer_type]).validate_python(answers)
        whole = client.get("/openapi.json").json()
        said = whole["components"]["schemas"]
        assert {KINDS[name], "Refused"} <= set(said)
        options = whole["paths"]["/predict"]["post"]["parameters"]
        assert {each["name"] for each in options} == OPTIONS.get(name, set())
        for option in ("n_best", "beam_size"):
            found = client.post(f"/predict?{option}=3", json=rows[0])
            taken = option in OPTIONS.get(name, ())
            assert found.status_code == (200 if taken else 400), found.text
            if taken and option == "n_best" and "scores" in found.json():
                assert 0 < len(found.json()["scores"]) <= 3
            elif taken and option == "n_best" and name != "bert/pretraining/local":
                beside = found.json().keys() & {"alternatives", "others"}
                assert [len(found.json()[key]) for key in beside] == [2]
            elif taken and option == "n_best":
                assert {len(mask) for mask in found.json()["masks"]} == {3}
        if "explain" in OPTIONS.get(name, ()):
            explained = client.post("/predict?explain=true", json=rows).json()
            assert [
                {k: v for k, v in one.items() if k != "reasons"} for one in explained
            ] == answers
            kind = predictor.with_options(AnswerOptions(explain=True)).answer_type
            TypeAdapter(list[kind]).validate_python(explained)
            words = len(rows[0][predictor.columns[0]].split()) * len(predictor.columns)
            assert len(explained[0]["reasons"]) >= words
        bad = client.post("/predict", json=[rows[0], {"other": "x"}])
        assert (bad.status_code, bad.json()["where"]) == (422, "row 2")
        for cell in (None, True, {}, [{}], [None], 1e400, "\0", ["\0"], [["a"], "b"], [[[]]], 7):
            odd = client.post(
                "/predict",
                content=json.dumps(dict.fromkeys(predictor.columns, cell)),
                headers={"Content-Type": "application/json"},
            )
            assert odd.status_code in (200, 400, 422), (cell, odd.text)
    service.batcher.close()
    for wide, narrow in zip(wanted, textmill.load(folder, precision="bf16")(rows), strict=True):
        apart = difference(wide, predictor.answer_row(narrow))  # None: another label or text
        if name != "language/transformer/local":  # it may say another character
            assert apart is not None, (wide, narrow)
            assert apart < BF16
