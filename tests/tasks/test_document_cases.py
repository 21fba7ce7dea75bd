"""Documents on real tiny files: sizes, losses and ceilings that PyText's users had."""

import json
import math
from pathlib import Path

import pytest

import textmill
from textmill.errors import DataError

COLUMNS = "train_data.columns={label: 0, text: 2}"
WORDS = "tokenizer.type=fitted_words"
KIM = (WORDS, "ngrams=null", "model.encoder.widths=[3, 4]")
FAST = ("optimizer.lr=0.005", "lr_scheduler.type=constant", "lr_scheduler.warmup_steps=0")


def documents(folder, train="train_data_tiny.tsv", valid=None, columns=COLUMNS):
    """Settings of the data; by default it is evaluated on what it is trained on."""
    return [
        f"train_data.path={folder / train}",
        f"valid_data.path={folder / (valid or train)}",
        columns,
        "reporters.console=false",
    ]


@pytest.fixture
def tiny(shared_data):
    return shared_data / "pytext-tiny"


@pytest.fixture(scope="module")
def docnn(shared_data, tmp_path_factory):
    tiny = shared_data / "pytext-tiny"
    words = [
        *documents(tiny),
        *KIM,
        *FAST,
        "trainer.max_epochs=25",
        "trainer.evaluate_every=5 epochs",
    ]
    folder = tmp_path_factory.mktemp("docnn") / "run"
    return textmill.train("classification/docnn", words, run_dir=folder)


def test_the_network_of_kim_has_as_many_parameters_as_pytexts(docnn):
    module = textmill.load(docnn.folder).task.module
    assert sum(p.numel() for p in module.parameters()) == 76_507


def test_it_begins_at_the_loss_of_chance_and_learns_all_rows(docnn):
    lines = [json.loads(x) for x in (docnn.folder / "metrics.jsonl").read_text().splitlines()]
    first = next(line for line in lines if line["split"] == "train")
    assert first["loss"] == pytest.approx(math.log(7), abs=0.5)
    last = [line for line in lines if line["split"] == "valid"][-1]
    assert last["accuracy"] == 1.0
    assert last["loss"] < 0.05
    names = {name.split("/", 1)[1].rsplit("/", 1)[0] for name in last if name.startswith("label/")}
    assert len(names) == 7


def test_the_file_of_predictions_has_every_row_with_its_label(docnn, tiny):
    files = sorted((docnn.folder / "predictions").iterdir())
    rows = [json.loads(line) for line in files[-1].read_text().splitlines()]
    by_row = {row["row"]: row for row in rows}
    lines = (tiny / "train_data_tiny.tsv").read_text().splitlines()
    gold = [line.split("\t")[0] for line in lines]
    assert sorted(by_row) == list(range(10))
    for number, label in enumerate(gold):
        assert by_row[number]["label"] == by_row[number]["prediction"] == label
        assert list(by_row[number]["scores"]) == list(dict.fromkeys(gold))  # as they first appear


def test_the_report_has_a_table_of_labels_and_no_curve_of_each(docnn):
    page = (docnn.folder / "report.html").read_text()
    assert "<h2>Labels</h2>" in page
    assert "<td>weather/find</td>" in page
    assert "<b>macro_f1</b>" in page
    assert "<b>label/" not in page


def test_the_loaded_run_answers_strings_as_it_was_evaluated(docnn):
    predictor = textmill.load(docnn.folder)
    assert predictor("what is the weather tomorrow").label == "weather/find"
    assert sum(predictor("what is it").scores.values()) == pytest.approx(1)


def test_unseen_rows_are_tested_with_the_labels_they_have(docnn, tiny):
    found = textmill.evaluate(docnn.folder, [f"valid_data.path={tiny / 'test_data_tiny.tsv'}"])
    values = found["valid_data"].values
    assert math.isnan(values["label/weather/find/f1"]) or values["label/weather/find/support"] == 0
    assert values["label/alarm/set_alarm/support"] == 2
    assert len(found["valid_data"].rows) == 4


def test_dense_features_stand_beside_the_text(tiny, tmp_path):
    train = "train_dense_features_tiny.tsv"
    columns = "train_data.columns={label: 0, text: 2, dense: 3}"
    words = [
        *documents(tiny, train, columns=columns),
        WORDS,
        *FAST,
        "ngrams=null",
        "dense.type=fitted",
    ]
    words += ["trainer.max_epochs=40", "trainer.evaluate_every=40 epochs"]
    run = textmill.train("classification/bilstm", words, run_dir=tmp_path / "run")
    assert run.result["best"]["accuracy"] == 1.0
    predictor = textmill.load(run.folder)
    assert sum(p.numel() for p in predictor.task.module.parameters()) == 43_889
    answer = predictor({"text": "Turn on all my alarms", "dense": [0.7, 0.9] + [0.1] * 8})
    assert answer.label in answer.scores
    with pytest.raises(DataError, match="needs the columns text, dense; 'dense' is missing"):
        predictor({"text": "Turn on all my alarms"})


def test_a_score_of_texts_is_learnt_by_heart(tiny, tmp_path):
    columns = "train_data.columns={text: 7, score: 9}"
    words = [*documents(tiny, "sts_tiny.tsv", columns=columns), *FAST, "task.span=[0, 5]"]
    words += ["model.dropout=0"]
    words += ["trainer.max_epochs=40", "trainer.evaluate_every=40 epochs"]
    run = textmill.train("regression/docnn", words, run_dir=tmp_path / "run")
    (values,) = textmill.evaluate(run.folder).values()
    assert values.values["pearson"] > 0.986
    assert values.values["loss"] < 0.002
    predictor = textmill.load(run.folder)
    assert sum(p.numel() for p in predictor.task.module.parameters()) == 76_101
    (file,) = (run.folder / "predictions").iterdir()
    rows = [json.loads(line) for line in file.read_text().splitlines()]
    assert len(rows) == 16
    for row in rows:
        assert predictor(row["text"]).number == pytest.approx(row["prediction"], abs=1e-4)
        assert 0 <= float(row["score"]) <= 5


def test_a_run_begins_with_the_vectors_of_a_file_and_is_loaded_without_it(tiny, tmp_path):
    vectors = tmp_path / "vectors.txt"
    vectors.write_text((tiny / "test_embed.raw").read_text())
    embedding = ["model.embedding.dim=5", f"model.embedding.vectors={vectors}"]
    words = [*documents(tiny), *KIM, *embedding, "model.embedding.frozen=true"]
    run = textmill.train("classification/docnn/local", words, run_dir=tmp_path / "run")
    line = f"Word vectors of {vectors}: 4 of 47 words have one of its 10 vectors (8.5 %)."
    assert line in (run.folder / "log.txt").read_text()
    vectors.unlink()
    task = textmill.load(run.folder).task
    number = task.text.ingredients["tokenizer"].numbers["is"]
    found = task.module.text.embedding.tokens.weight[number].tolist()
    assert found == pytest.approx([0.17873, -0.10689, 0.069695, -0.20678, 0.037157])


def test_the_example_trains_on_real_messages(shared_data, tmp_path):
    example = Path(__file__).parents[2] / "examples" / "sms_spam.py"
    data = shared_data / "sms-spam"
    words = [f"train_data.path={data / 'dev.tsv'}", f"valid_data.path={data / 'dev.tsv'}"]
    words += ["reporters.console=false", "trainer.max_steps=50", "tokenizer.vocab_size=1000"]
    words += ["model.encoder.hidden_dim=8", "model.embedding.dim=32", "task.max_length=64"]
    words += [f"tokenizer.cache_dir={tmp_path}", "lr_scheduler.warmup_steps=5", "optimizer.lr=0.01"]
    run = textmill.train(example, words, run_dir=tmp_path / "run")
    values = json.loads((run.folder / "metrics.jsonl").read_text().splitlines()[-1])
    assert values["accuracy"] > 0.9
    assert values["roc_auc"] > 0.9
    assert textmill.load(run.folder)("see you at home").label == "ham"
