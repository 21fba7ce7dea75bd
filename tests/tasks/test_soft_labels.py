"""Soft labels: a teacher's, live or written, are learnt with the rows' own labels, or without."""

import json
from itertools import count
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.special import log_softmax, rel_entr, softmax

import textmill
from tests.recipes.local_data import TEXTS
from textmill.errors import DataError, TextmillError, UserError
from textmill.tasks.several.soft_labels import SoftLabels

NAME = "classification/docnn/local"
QUIET = ["reporters.console=false", "reporters.html=false", "tokenizer.columns=[text]"]
SOFT = SoftLabels.Config(column="scores").build(names=["alarm", "music"])


def rows(label="alarm", other="music"):
    return [(label if "wake" in text else other, text) for text in TEXTS]


def trained(folder, lines, *words, steps=15):
    path = Path(f"{folder}.tsv")
    path.write_text("".join("\t".join(line) + "\n" for line in lines))
    valid = Path("valid.tsv")
    valid.write_text("".join("\t".join(line) + "\n" for line in rows()))
    data = [f"train_data.path={path}", "valid_data.path=valid.tsv"]
    data += ["valid_data.columns=[label, text]", f"trainer.max_steps={steps}", "optimizer.lr=0.05"]
    return textmill.train(NAME, [*data, *QUIET, *words], run_dir=folder)


@pytest.fixture
def teacher(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return textmill.load(trained("teacher", rows()).folder)


def weights(run):
    return textmill.load(run.folder).task.module.state_dict()


def told(teacher):
    """A cell of log probabilities for each text."""
    return [json.dumps({n: np.log(p) for n, p in a.scores.items()}) for a in teacher(TEXTS)]


def test_a_live_teacher_and_its_written_answers_teach_the_same(teacher):
    """The rows' own labels are all wrong: who listens to the teacher alone answers rightly."""
    wrong = rows("music", "alarm")
    words = ["task.soft_labels.hard_weight=0"]
    live = trained("live", wrong, *words, "task.soft_labels.teacher.path=teacher")
    lines = [(*row, cell) for row, cell in zip(wrong, told(teacher), strict=True)]
    written = ["train_data.columns=[label, text, scores]", "task.soft_labels.column=scores"]
    column = trained("column", lines, *words, *written)
    for name, value in weights(live).items():
        torch.testing.assert_close(value, weights(column)[name], atol=1e-4, rtol=1e-3)
    assert [answer.label for answer in textmill.load("live")(TEXTS)] == [r[0] for r in rows()]


def test_texts_without_labels_learn_from_the_teacher_alone(teacher):
    """Half of the rows have an empty label; the labels are declared, as no row need have one."""
    words = ["train_data.columns=[text, label]", "train_data.optional=[label]"]
    words += ["labels.names=[alarm, music]", "task.soft_labels.teacher.path=teacher"]
    lines = [(text, "") for text in TEXTS]
    run = trained("unlabelled", lines, *words)
    assert run.result["best"]["accuracy"] == 1
    lines[0] = (TEXTS[0], "alarm")
    assert trained("mixed", lines, *words).result["best"]["accuracy"] == 1
    with pytest.raises(TextmillError, match="'' is no label"):
        trained("none", lines, *words[:3])


def test_the_loss_of_a_batch_is_the_formula_of_its_rows(teacher):
    """Of a row with a label, and of one without, which has the divergence in full."""
    T, share = 3.0, 0.25
    settings = [f"task.soft_labels.temperature={T:g}", f"task.soft_labels.hard_weight={share}"]
    words = [*settings, "task.soft_labels.column=scores", "labels.names=[alarm, music]"]
    words += ["train_data.columns=[label, text, scores]"]
    lines = [(*row, cell) for row, cell in zip(rows(), told(teacher), strict=True)]
    task = textmill.load(trained("student", lines, *words, steps=1).folder).task
    names = ["label", "text", "scores"]
    data = [dict(zip(names, line, strict=True)) for line in lines]
    data[1]["label"] = ""
    batches = task.batches(data, train=True, seed=1)
    (batch,) = batches
    loss = task.training_step(batch, batches.examples(batch))
    own = task.scores(batch).detach().double().numpy()
    expected = 0.0
    for row, scores in zip(batches.examples(batch), own, strict=True):
        logs = [json.loads(row["scores"])[name] for name in task.text.label.labels]
        p, q = softmax(np.array(logs) / T), softmax(scores / T)
        soft = T**2 * rel_entr(p, q).sum()
        if not row["label"]:
            expected += soft
            continue
        hard = -log_softmax(scores)[task.text.label.labels.names.index(row["label"])]
        expected += (1 - share) * soft + share * hard
    assert float(loss.total.detach()) == pytest.approx(expected, rel=1e-5)
    assert int(loss.count) == len(lines)


def test_a_student_goes_on_exactly_where_it_was_interrupted(teacher, monkeypatch):
    words = ["task.soft_labels.teacher.path=teacher", "trainer.evaluate_every=5 steps"]
    whole = trained("whole", rows(), *words, steps=20)
    logs, calls = SoftLabels.logs, count()

    def breaks(*arguments):
        if next(calls) == 12:
            raise RuntimeError("power cut")
        return logs(*arguments)

    monkeypatch.setattr(SoftLabels, "logs", breaks)
    with pytest.raises(RuntimeError, match="power cut"):
        trained("parts", rows(), *words, steps=20)
    textmill.calibrate("teacher", ["valid_data.path=valid.tsv"])
    with pytest.raises(UserError, match=r"task.soft_labels.teacher.path changed since parts was"):
        trained("parts", rows(), *words, steps=20)
    Path("teacher/checkpoints/calibration.json").unlink()
    parts = trained("parts", rows(), *words, steps=20)
    assert next(calls) == 13 + 10  # from step 10 on
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(parts)[name])


def test_soft_labels_that_cannot_be_are_told(teacher):
    assert SOFT.read([{"scores": "[-0.5, -1]"}, {"scores": '{"music": -2, "alarm": -0.1}'}]) == [
        [-0.5, -1.0],
        [-0.1, -2.0],
    ]
    for cell, said in {
        '{"alarm": -1, "x": -2}': "are of 'alarm', 'x'. The 2 labels are 'alarm', 'music'",
        "[-1, -2, -3]": "log probabilities of 2 labels, an object or a list, found",
        "-1": "log probabilities of 2 labels, an object or a list, found '-1'",
        "": "log probabilities of 2 labels",
        "[0.3, 0.7]": "finite and 0 or less, found '.0.3, 0.7.'. textmill predict RUN",
        '["a", "b"]': "finite and 0 or less",
        "[-Infinity, 0]": "finite and 0 or less",
    }.items():
        with pytest.raises(DataError, match=f"^Row 0, column 'scores': .*{said}"):
            SOFT.read([{"scores": cell}])
    lines = [(*row, "[0.5, 0.5]") for row in rows()]
    words = ["train_data.columns=[label, text, scores]", "task.soft_labels.column=scores"]
    with pytest.raises(DataError, match=r"bad.tsv:1: column 'scores': wanted log prob"):
        trained("bad", lines, *words)
    use = "task.soft_labels.teacher.path=teacher"
    with pytest.raises(UserError, match=r"this run are 'alarm', 'other'.*teacher are 'alarm', 'mu"):
        trained("others", rows(other="other"), use, "valid_data.path=others.tsv")
    with pytest.raises(TextmillError, match="wants a teacher or a column, one of them"):
        trained("both", rows(), use, "task.soft_labels.column=text")
    with pytest.raises(UserError, match=r"soft_labels is for training by steps.*solves for labels"):
        textmill.train(
            "classification/ngrams/local",
            [*(f"{d}_data.path=valid.tsv" for d in ("train", "valid")), *QUIET, use],
        )
    asks = SoftLabels.Config(teacher={"path": "teacher"}).build(names=["music", "alarm"])
    with pytest.raises(UserError, match=r"reads the column 'text'.*do not have: label, body"):
        asks.logs([{"label": "music", "body": "play"}], torch.device("cpu"))
