"""Question answering as users train it: small forms of experiments, real files, loading a run."""

import json
import shutil

import pytest

import textmill
from textmill.errors import DataError
from textmill.recipes import registries

CONTEXT = "Rollo led the Normans. Paris is on the Seine."
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": "France",
            "paragraphs": [
                {
                    "context": CONTEXT,
                    "qas": [
                        {
                            "id": str(number),
                            "question": question,
                            "answers": [{"text": text, "answer_start": CONTEXT.index(text)}],
                        }
                        for number, (question, text) in enumerate(
                            [
                                ("Who led the Normans?", "Rollo"),
                                ("Where is Paris?", "on the Seine"),
                                ("Whom did Rollo lead?", "the Normans"),
                            ]
                        )
                    ],
                }
            ],
        }
    ],
}
NAMES = [name for name in registries.experiments.names() if name.startswith("question/")]


@pytest.fixture
def files(tmp_path):
    for name in ("train", "dev"):
        (tmp_path / f"{name}.json").write_text(json.dumps(SQUAD), encoding="utf-8")
    return tmp_path


def settings(folder, *more, names=("train.json", "dev.json")):
    return [
        f"train_data.path={folder / names[0]}",
        f"valid_data.path={folder / names[1]}",
        "reporters.console=false",
        "reporters.html=false",
        "trainer.evaluate_every=100 steps",
        *more,
    ]


@pytest.mark.parametrize("name", [name for name in NAMES if name.endswith("/local")])
def test_the_small_form_of_every_experiment_trains_and_answers(name, files):
    run = textmill.train(name, settings(files, "trainer.max_steps=2"), run_dir=files / "run")
    predictor = textmill.load(run.folder)
    answer = predictor({"question": "Who fell?", "context": "Nobody fell."})
    assert answer.text
    assert "Nobody fell."[answer.start : answer.end] == answer.text == str(answer)


def test_every_experiment_has_a_small_form():
    full = {name for name in NAMES if not name.endswith(("/local", "/pretrained"))}
    assert full == {"question/drqa", "question/transformer"}
    assert {f"{name}/local" for name in full} == set(NAMES) - full - {"question/pretrained"}


def test_a_run_is_loaded_and_answers_without_its_files(files):
    words = settings(
        files, "trainer.max_steps=40", "optimizer.lr=0.03", "lr_scheduler.type=constant",
        "model.dropout=0", "model.no_answer=true",
    )  # fmt: skip
    run = textmill.train("question/drqa/local", words, run_dir=files / "run")
    (path,) = (run.folder / "predictions").glob("*.jsonl")
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    assert [(row["id"], row["prediction"]) for row in rows] == [
        ("0", "Rollo"), ("1", "on the Seine"), ("2", "the Normans")
    ]  # fmt: skip
    row = rows[1]
    assert (row["start"], row["end"], row["answers"]) == (32, 44, '["on the Seine"]')
    assert row["no_answer"] < 0.5 < row["score"]
    assert "seine" not in (run.folder / "config.yaml").read_text()  # words would fill it
    shutil.rmtree(files / "run" / "predictions")
    for name in ("train", "dev"):
        (files / f"{name}.json").unlink()
    predictor = textmill.load(files / "run")
    answer = predictor({"question": "Where is Paris?", "context": CONTEXT})
    assert (answer.text, answer.start, answer.end) == ("on the Seine", 32, 44)
    assert predictor.answer_row(answer)["score"] == pytest.approx(row["score"], abs=1e-5)


def test_a_file_of_questions_without_answers_stops_before_step_1(files):
    content = json.dumps(SQUAD).replace(
        '"answers": [{"text": "Rollo", "answer_start": 0}]', '"answers": []'
    )
    (files / "dev.json").write_text(content, encoding="utf-8")
    with pytest.raises(DataError, match=r"1 of 3 questions have no answer .* first in row 0"):
        textmill.train("question/drqa/local", settings(files), run_dir=files / "run")


def test_real_questions_are_learned_from(shared_data, tmp_path):
    """The tab-separated file of PyText; it reports F1 of 31.6 after ten epochs."""
    words = settings(
        shared_data / "pytext-tiny",
        "train_data.columns={context: 0, question: 1, answers: 2, answer_starts: 3}",
        "model.dropout=0",
        "optimizer.lr=0.03",
        "trainer.max_steps=9",  # three epochs of 96 questions
        names=("squad_tiny.tsv", "squad_tiny.tsv"),
    )
    run = textmill.train("question/drqa/local", words, run_dir=tmp_path / "run")
    lines = (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    last = [line for line in map(json.loads, lines) if line["split"] == "valid"][-1]
    assert last["f1"] > 0.15  # 0.05 before training


@pytest.mark.slow  # half a minute
def test_questions_are_learned_by_heart_better_than_pytext_did(shared_data, tmp_path):
    """PyText's sizes and rate on the same 96 questions: 21.9 and 31.6 after ten epochs, exact match
    and F1, and 55.2 and 56.7 after forty, as answers within its words could not be learned."""
    words = settings(
        shared_data / "pytext-tiny",
        "train_data.columns={context: 0, question: 1, answers: 2, answer_starts: 3}",
        "train_data.batch_size=16",
        "model.embedding.dim=50",
        "model.encoder.hidden_dim=32",
        "model.question_encoder.hidden_dim=32",
        "characters=null",
        "optimizer.lr=0.005",
        "lr_scheduler.type=constant",
        "trainer.max_steps=60",
        names=("squad_tiny.tsv", "squad_tiny.tsv"),
    )
    run = textmill.train("question/drqa", words, run_dir=tmp_path / "run")
    lines = (run.folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
    last = [line for line in map(json.loads, lines) if line["split"] == "valid"][-1]
    assert last["exact_match"] > 0.552
    assert last["f1"] > 0.567
