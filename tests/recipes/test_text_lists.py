"""Lists of texts on PyText's small files: classified, read beside their last, labelled by turn."""

import json
from dataclasses import dataclass

import pytest
from starlette.testclient import TestClient

import textmill
from textmill.cli.main import main
from textmill.errors import DataError, UserError
from textmill.exported import load
from textmill.inference.export.compare import difference
from textmill.runs.export import export
from textmill.serving.app import Service, make_app
from textmill.serving.limits import Limits
from textmill.tasks.tagging import WordTagging
from textmill.text.cells import ListCell
from textmill.text.features.labels import FittedLabels

SURE = [
    "tokenizer.min_count=1", "model.dropout=0", "lr_scheduler.type=constant", "optimizer.lr=0.03",
    "trainer.max_steps=30", "trainer.evaluate_every=30 steps", "reporters.console=false",
    "reporters.html=false",
]  # fmt: skip
"""With no recurrent layer, whose graphs take torch seconds."""
CNN = ["type=cnn", "filters=16", "widths=[3]"]


@dataclass
class Case:
    experiment: str
    file: str
    words: list[str]
    values: dict[str, float]
    """PyText's ceilings, or all right."""
    column: str
    asked: list[str]
    answer: str
    rows: int
    """Of the file."""


CASES = {
    "a label for a list": Case(
        "classification/sentences/local", "msg_topic_train.tsv",
        [*(f"model.sequence.{word}" for word in CNN), "task.loss.type=binary_cross_entropy"],
        {"accuracy": 1.0}, "text", ["we should discuss"], "cu:discuss", 4,
    ),
    "an intent beside earlier turns": Case(
        "joint/context/local", "contextual_intent_slot_train_tiny.tsv",
        [
            *(f"model.context.sequence.{word}" for word in CNN),
            *(f"model.encoder.{word}" for word in CNN),
            "train_data.columns=[label,slots,turns]", "slots.format=spans", "model.word_dropout=0",
        ],
        {"frame_accuracy": 1.0, "slot_f1": 1.0}, "turns", ["this is crazy still to me"],
        "[cu:address_Person [person this ] is crazy still to me ]", 10,
    ),
    "a label for each turn of a session": Case(
        "tagging/turns/local", "seq_tagging_example.tsv",
        [
            *(f"model.sequence.{word}" for word in CNN),
            "train_data.columns={session: 0, text: 1, label: 3}",
        ],
        {"token_accuracy": 1.0, "whole_sentence": 1.0}, "text", ["int31", "int32", "int33"],
        "0 1 1", 3,
    ),
}  # fmt: skip


SLOW = {"a label for a list"}  # its parts are those of the others


@pytest.mark.parametrize(
    "case",
    [
        pytest.param(case, id=name, marks=pytest.mark.slow if name in SLOW else ())
        for name, case in CASES.items()
    ],
)
def test_it_reaches_the_ceiling_and_its_export_and_server_answer_the_same(
    case, shared_data, capsys
):
    path = shared_data / "pytext-tiny" / case.file
    words = [f"train_data.path={path}", f"valid_data.path={path}", *SURE, *case.words]
    run = textmill.run_experiment(case.experiment, "train_and_evaluate", "run", words)
    found = run.evaluations["valid_data"]
    assert {name: found.values[name] for name in case.values} == case.values
    assert len(found.rows) == case.rows
    predictor = textmill.load("run")
    assert predictor.columns == (case.column,)
    assert str(predictor({case.column: case.asked})) == case.answer
    lists = [case.asked, ["hello", "", "yes"], ["not good at all"] * 30, [" ".join(["ok"] * 40)]]
    rows = [{case.column: texts} for texts in (*lists, "hello\nyes")]
    wanted = [predictor.answer_row(answer) for answer in predictor(rows)]
    alone = [predictor.answer_row(predictor(row)) for row in rows]
    done = export("run", "onnx", out="out")
    assert done.comparison.same == case.rows
    exported = load("out", device="cpu", threads=1)
    for answers in (alone, map(exported.answer_row, exported(rows))):
        for one, other in zip(answers, wanted, strict=True):
            assert difference(other, one) < 1e-5
    with TestClient(make_app(Service(predictor=exported, name="m", limits=Limits()))) as client:
        given = client.post("/predict", json=[*rows, case.asked]).json()
        assert given[0] == given[-1]
        assert given[0]["prediction"] == case.answer
        given = client.post("/predict", json={case.column: []})
        assert (given.status_code, given.json()["error"]) == (
            422, f"column '{case.column}': wanted one text or more, found none."
        )  # fmt: skip
    for bad in ([], 7, ["a", 3], '["a"]'):
        with pytest.raises(DataError, match=rf"^Row 0, column '{case.column}': wanted .*text"):
            predictor([{case.column: bad}])
    capsys.readouterr()
    assert main(["predict", "run", str(path), "--json"]) == 0
    said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [row["prediction"] for row in said] == [row["prediction"] for row in found.rows]
    assert [row[case.column] for row in said] == [[*row[case.column].parts] for row in found.rows]
    if case.rows > 3:  # the vector of a list, or of its last text
        assert predictor.embed(rows).shape[0] == len(rows)
    else:
        with pytest.raises(UserError, match="makes no vectors of texts"):
            predictor.embed(rows)


def test_a_row_with_another_number_of_labels_than_texts_is_a_bad_one():
    labels = FittedLabels.Config(column="label", multiple=True)
    check = WordTagging.Config(column="text", max_texts=5).row_check(labels)
    row = {"text": ListCell(["how are you", "ok"]), "label": ListCell(["ask", "say"])}
    assert check(row) is None
    assert check({**row, "label": ListCell(["ask"])}) == (
        "has 2 texts in 'text', but 1 tags in 'label': wanted one for each text"
    )
