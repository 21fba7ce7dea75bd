"""A calibrated run: what it keeps, and that all that answers for it answers alike."""

import json
import random
import shutil

import numpy as np
import pytest
import torch

import textmill
from textmill.checkpoint.calibration import Calibration
from textmill.checkpoint.layout import CHECKPOINTS
from textmill.cli.main import main
from textmill.errors import CheckpointError, UserError
from textmill.exported.row_predictor import ExportedPredictor
from textmill.inference import Predictor
from textmill.runs import answering
from textmill.runs.answering import load_answering
from textmill.runs.ensemble import ensemble
from textmill.runs.export import export
from textmill.runs.load_run import load

RECIPE = "classification/averaging/local"
TOPICS = {"sport": "goal match team win", "music": "song band tune album", "food": "soup cake"}
TEXTS = ["goal team win", "song soup", "match tune cake", "album"]


def write_rows(path, count, seed, *, several=False):
    """Rows of three words: one in three for a topic makes it a label in a third of the cases."""
    draw, lines = random.Random(seed), []
    for _ in range(count):
        main = draw.choice([*TOPICS])
        topics = [main if draw.random() < 0.7 else draw.choice([*TOPICS]) for _ in range(3)]
        words = [draw.choice(TOPICS[topic].split()) for topic in topics]
        label = draw.choice(topics)
        if several:
            label = " ".join(t for t in TOPICS if draw.random() < topics.count(t) / 3)
        lines.append(f"{label}\t{' '.join(words)}\n")
    path.write_text("".join(lines))


def train(folder, *words, several=False):
    write_rows(folder / "train.tsv", 300, 1, several=several)
    write_rows(folder / "valid.tsv", 600, 2, several=several)
    write_rows(folder / "other.tsv", 600, 3, several=several)
    said = ["train_data.path=train.tsv", "valid_data.path=valid.tsv", "optimizer.lr=0.05"]
    said += ["trainer.max_epochs=null", "trainer.max_steps=150", "reporters.console=false"]
    textmill.train(RECIPE, [*said, *words], run_dir="run")


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("calibrated")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        train(folder)
    return folder


@pytest.fixture
def run(trained, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(answering, "may_have_accelerator", lambda: False)
    shutil.copytree(trained, tmp_path, dirs_exist_ok=True)
    return tmp_path / "run"


def values_on_others(run):
    return textmill.evaluate(run, ["valid_data.path=other.tsv"])["valid_data"].values


def test_a_temperature_makes_scores_probabilities_on_other_rows(run):
    plain, before = load(run)(TEXTS), values_on_others(run)
    found = textmill.calibrate(run)
    after, predictor = values_on_others(run), load(run)
    assert found.temperature > 1.2
    assert found.errors[1] < found.errors[0]
    assert after["calibration_error"] < before["calibration_error"] / 2
    assert after["accuracy"] == before["accuracy"]
    for old, new in zip(plain, predictor(TEXTS), strict=True):
        logits = np.log([*old.scores.values()]) / found.temperature
        wanted = torch.tensor(logits).softmax(0).tolist()
        assert [*new.scores.values()] == pytest.approx(wanted, abs=1e-6)
        assert new.label == old.label
        assert [*new.log_scores.values()] == pytest.approx(np.log(wanted).tolist(), abs=1e-5)
    assert textmill.calibrate(run) == found  # of the scores as they were trained


def test_with_a_share_of_correct_answers_the_least_certain_rows_have_no_answer(run, capsys):
    assert main(["calibrate", str(run), "--correct", "0.85"]) == 0
    said = capsys.readouterr().out
    assert "600 rows of valid_data: temperature" in said
    assert "every label" in said
    values = values_on_others(run)
    assert 0.1 < values["coverage"] < 1
    assert values["accuracy"] < 0.85 <= values["answered_precision"]
    (run.parent / "texts.txt").write_text("goal team win\nsong soup\n")
    assert main(["predict", str(run), str(run.parent / "texts.txt")]) == 0
    assert capsys.readouterr().out == "sport\n-\n"
    answer = load(run)("song soup")
    assert (answer.label, answer.row()["prediction"]) == ("", "")
    assert answer.score == max(answer.scores.values())


def test_an_export_answers_as_the_run_until_it_is_calibrated_again(run, caplog):
    textmill.calibrate(run, correct=0.85)
    export(run, "onnx")
    exported, itself = load_answering(run), load(run)
    assert isinstance(exported, ExportedPredictor)
    for found, wanted in zip(exported(TEXTS), itself(TEXTS), strict=True):
        assert found.label == wanted.label
        assert found.scores == pytest.approx(wanted.scores, abs=1e-6)
    assert {answer.label for answer in exported(TEXTS)} > {""}
    textmill.calibrate(run)  # without thresholds
    assert f"{run / 'export' / 'onnx'} was made before" in caplog.text
    assert isinstance(load_answering(run), Predictor)


def test_the_scores_of_a_file_are_log_probabilities_with_all_digits(run, capsys):
    assert main(["predict", str(run), "other.tsv", "--scores", "--device", "cpu"]) == 0
    rows = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    task = load(run).task
    scores = task.scores(
        next(iter(task.batches([{"label": "food", **rows[0]}], train=False, seed=0)))
    )
    assert len(rows) == 600
    assert [*rows[0]["scores"]] == [*task.text.label.labels.names]
    wanted = scores.log_softmax(-1)[0].tolist()
    assert [*rows[0]["scores"].values()] == pytest.approx(wanted, rel=1e-6)
    assert main(["predict", str(run), "other.tsv", "--scores", "--output", "soft.jsonl"]) == 0
    kept = [json.loads(line) for line in (run.parent / "soft.jsonl").read_text().splitlines()]
    assert {"label", "text", "prediction", "scores"} <= {*kept[0]}
    assert kept[0]["scores"] == pytest.approx(rows[0]["scores"], abs=1e-5)


def test_the_report_shows_it_and_verify_finds_a_change(run, capsys):
    textmill.calibrate(run, correct=0.85)
    page = (run / "report.html").read_text()
    assert "before calibration" in page
    assert "temperature" in page
    assert "for a share of 0.85 correct" in page
    assert main(["runs", "verify", str(run)]) == 0
    path = run / CHECKPOINTS / "calibration.json"
    path.write_text(path.read_text().replace('"temperature": ', '"temperature": 1'))
    assert main(["runs", "verify", str(run)]) == 1
    assert "its own digest does not fit its content" in capsys.readouterr().out
    with pytest.raises(CheckpointError, match=r"calibration\.json: not as textmill calibrate"):
        load(run)
    path.unlink()
    assert load(run).task.text.temperature == 1


def test_when_the_run_goes_on_its_new_weights_are_not_calibrated(run, caplog):
    textmill.calibrate(run)
    textmill.train(str(run), ["trainer.max_steps=170"])
    assert load(run, checkpoint="last").task.text.temperature == 1
    assert "the scores of step-00000170 are as it was trained" in caplog.text


def test_of_several_labels_each_has_a_threshold(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    train(tmp_path, "labels.multiple=true", "train_data.optional=[label]", several=True)
    before = values_on_others("run")
    found = textmill.calibrate("run", correct=0.8)
    after = values_on_others("run")
    assert {*found.thresholds} == {*TOPICS}
    assert after["calibration_error"] < before["calibration_error"]
    for topic in TOPICS:
        assert after[f"label/{topic}/precision"] >= 0.8
    for answer in load("run")(TEXTS):
        assert [*answer.labels] == [t for t in TOPICS if answer.scores[t] > found.thresholds[t]]


def test_an_ensemble_is_calibrated_as_a_whole(run):
    alone = textmill.calibrate(run, correct=0.85)
    joined = ensemble([run, run], run.parent / "joined")
    assert load(joined)("goal song").scores != load(run)("goal song").scores  # as trained
    found = textmill.calibrate(joined, correct=0.85)
    assert found.temperature == pytest.approx(alone.temperature, abs=1e-4)
    export(joined, "onnx")
    for predictor in (load(joined), load_answering(joined)):
        for answer, wanted in zip(predictor(TEXTS), load(run)(TEXTS), strict=True):
            assert answer.label == wanted.label
            assert answer.scores == pytest.approx(wanted.scores, abs=1e-4)


@pytest.mark.parametrize(
    ("words", "options", "error"),
    [
        (["test_data.path=other.tsv"], {}, "'test_data.path=other.tsv' cannot be set here"),
        ([], {"correct": 1.0}, "correct must be above 0 and below 1, but is 1.0"),
        (
            [],
            {"correct": 0.999},
            "With no threshold 0.999 of the answers are certain to be correct",
        ),
    ],
)
def test_what_cannot_be_is_refused_and_changes_nothing(run, words, options, error):
    with pytest.raises(UserError, match=error):
        textmill.calibrate(run, words, **options)
    assert Calibration.read(run / CHECKPOINTS) is None
