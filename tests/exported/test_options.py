"""What a request asks of its answers goes to a run, an export, a command and a server alike."""

import json
from threading import Thread

import pytest
from starlette.testclient import TestClient

import textmill
from tests.exported.test_row_predictor import Counted
from tests.recipes.local_data import short, write_data
from tests.trained_run import library_run
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.exported import load
from textmill.exported.row_predictor import AnswerOptions
from textmill.serving.app import Service, make_app
from textmill.serving.limits import Limits
from textmill.text.processors.texts import Classified

ROWS = ["The cat sleeps.", "Go.", "She lives in the garden."]
THREE = AnswerOptions(n_best=3)


def test_a_run_and_its_export_give_as_many_answers(exported):
    run, export = textmill.load(library_run()), load(exported, device="cpu", threads=1)
    for model in (run, export):
        plain = [answer.text for answer in model(ROWS)]
        found = model.with_options(THREE)(ROWS)
        assert all(len(answer.alternatives) == 2 for answer in found)
        scores = [[one.score for one in (answer, *answer.alternatives)] for answer in found]
        assert scores == [sorted(each, reverse=True) for each in scores]
        assert [answer.text for answer in model(ROWS)] == plain
        assert model.with_options(AnswerOptions())(ROWS) == model(ROWS)
        with pytest.raises(UserError, match=r"n_best .*beam_size"):
            model.with_options(AnswerOptions(n_best=3, beam_size=2))
    wide = AnswerOptions(beam_size=4)
    assert [str(answer) for answer in export.with_options(wide)(ROWS)] == [
        str(answer) for answer in run.with_options(wide)(ROWS)
    ]


def test_a_model_that_has_none_says_so():
    with pytest.raises(UserError, match="This model takes no n_best"):
        Counted().with_options(THREE)
    with pytest.raises(UserError, match="n_best is a number above 0; found 0"):
        AnswerOptions(n_best=0)


def test_the_command_takes_them(exported, tmp_path, capsys):
    (tmp_path / "rows.txt").write_text("Go.\n")
    words = ["predict", str(exported), str(tmp_path / "rows.txt"), "--json", "--device", "cpu"]
    assert main([*words, "--n-best", "3"]) == 0
    wanted = load(exported, device="cpu", threads=1).with_options(THREE)("Go.").row()
    found = json.loads(capsys.readouterr().out)
    assert [one["prediction"] for one in found["alternatives"]] == [
        one["prediction"] for one in wanted["alternatives"]
    ]


def test_a_server_takes_them_in_its_query(exported):
    model = load(exported, device="cpu", threads=1)
    service = Service(predictor=model, name="m", limits=Limits(beam=4))
    found = {}
    with TestClient(make_app(service)) as client:

        def ask(query):
            found[query] = client.post(f"/predict{query}", json=ROWS)

        queries = ["", "?n_best=3", "?n_best=2&beam_size=4", "?n_best=1"]
        threads = [Thread(target=ask, args=(query,)) for query in queries]
        [thread.start() for thread in threads]
        [thread.join() for thread in threads]
        counts = {q: {len(row.get("alternatives", ())) for row in found[q].json()} for q in queries}
        assert counts == {"": {0}, "?n_best=3": {2}, "?n_best=2&beam_size=4": {1}, "?n_best=1": {0}}
        for query, where in [
            ("?n_best=9", "query n_best"),
            ("?n_best=two", "query n_best"),
            ("?best=2", "query"),
            ("?n_best=3&beam_size=2", "query"),
        ]:
            ask(query)
            assert (found[query].status_code, found[query].json()["where"]) == (400, where)
        said = client.get("/openapi.json").json()["paths"]["/predict"]["post"]["parameters"]
        assert [each["name"] for each in said] == ["n_best", "beam_size"]
    service.batcher.close()


def test_a_classifier_takes_labels_a_threshold_and_reasons(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    name = "classification/ngrams/local"
    write_data(name)
    words = [*short(name), "reporters.console=false", "reporters.html=false"]
    run = textmill.train(name, [*words, "trainer.export=[onnx]"], run_dir="run").folder
    itself, export = textmill.load(run), load(run / "export" / "onnx")
    text = "wake me at seven"
    for model in (itself, export):
        plain, few = model(text), model(text, n_best=1, threshold=0)
        assert few.scores == {plain.label: plain.score}
        assert few.label == plain.label
        assert model([text], threshold=1)[0].label == ""
        with pytest.raises(UserError, match="takes no beam_size"):
            model(text, beam_size=2)
    one, two = itself.explain(text), export.explain(text)
    assert [r.text for r in one.reasons] == text.split()
    assert [r.weight for r in two.reasons] == pytest.approx(
        [r.weight for r in one.reasons], abs=1e-3
    )
    capsys.readouterr()
    (tmp_path / "rows.txt").write_text(f"{text}\n")
    command = ["predict", "run", "rows.txt", "--explain", "--threshold", "1", "--device", "cpu"]
    assert main(command) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["reasons"] == one.row()["reasons"]
    assert (shown["text"], shown["prediction"]) == (text, "")
    assert main(["predict", "run", "rows.txt", "--explain", "--scores"]) == 2
    service = Service(predictor=itself, name="m", limits=Limits(items=9))
    with TestClient(make_app(service)) as client:

        def ask(query, rows=text):
            found = client.post(f"/predict{query}", json=rows)
            return found.status_code, found.json()

        assert ask("?explain=true&threshold=1")[1] == {
            name: value for name, value in shown.items() if name != "text"
        }
        assert ask("?n_best=1&explain=false") == (
            200,
            {**plain.row(), "scores": {plain.label: round(plain.score, 6)}},
        )
        assert ask("?explain=true", "so " * 50)[0] == 200  # a single one always may
        status, long = ask("?explain=true", "wake me " * 12_500)  # as long as a text may be
        assert (status, len(long["reasons"])) == (200, 10)
        status, refusal = ask("?explain=true", [text, text])
        assert status == 413
        assert (
            "about at most 9 rows, each once for each of its words; found 10 in" in refusal["error"]
        )
        for query, where in [
            ("?explain=1", "query explain"),
            ("?threshold=nan", "query threshold"),
            ("?threshold=2", "query threshold"),
            ("?beam_size=2", "query"),
        ]:
            status, refusal = ask(query)
            assert (status, refusal["where"]) == (400, where)
        assert ask("?explain=true", " ") == (
            422,
            {
                "error": "An explanation wants a string with a word in text; found none.",
                "where": "body",
            },
        )
        said = client.get("/openapi.json").json()
        named = said["paths"]["/predict"]["post"]["parameters"]
        assert [each["name"] for each in named] == ["n_best", "threshold", "explain"]
        assert "reasons" in said["components"]["schemas"]["ExplainedClassifiedRow"]["properties"]
    service.batcher.close()


def test_of_several_labels_those_above_the_threshold_are_the_answer():
    scores = {"a": 0.2, "b": 0.9, "c": 0.6}
    both = Classified("b, c", 0.6, scores, ("b", "c"), multiple=True)
    assert both.chosen(threshold=0.7).labels == ("b",)
    assert both.chosen(threshold=0.1).label == "a, b, c"
    none = both.chosen(threshold=0.95, n_best=2)
    assert (none.labels, [*none.scores]) == ((), ["b", "c"])
