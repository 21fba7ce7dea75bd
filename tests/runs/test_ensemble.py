"""Ensembles of finished runs: their answers are the mean, and the run needs no member any more."""

import shutil
from itertools import pairwise, product
from pathlib import Path

import numpy as np
import pytest
import torch

import textmill
from tests.recipes.local_data import short, write_data
from textmill.cli.main import main
from textmill.errors import UserError
from textmill.tasks.rows_task import sampled

QUIET = ["reporters.console=false", "reporters.html=false"]


@pytest.fixture(autouse=True)
def _here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def joined(*recipes, words=()):
    """Runs of recipes, each with a seed of its own, and their ensemble."""
    for number, name in enumerate(recipes):
        write_data(name)
        seed = [f"trainer.seed={number}", *short(name, 6), *QUIET, *words]
        textmill.train(name, seed, run_dir=f"run{number}")
    runs = [f"run{number}" for number in range(len(recipes))]
    assert main(["ensemble", *runs, "--out", "all"]) == 0
    loaded = [textmill.load(run) for run in runs]
    for run in runs:
        shutil.rmtree(run)
    return loaded, textmill.load("all")


def exported_alike(rows):
    """An export gives the answers of the run, which export itself compares, to other rows too."""
    predictor = textmill.load("all")
    assert main(["export", "all", "--format", "onnx"]) == 0
    exported = textmill.exported.load("all/export/onnx")
    for wanted, found in zip(predictor(rows), exported(rows), strict=True):
        own, theirs = predictor.answer_row(wanted), exported.answer_row(found)
        assert own["prediction"] == theirs["prediction"]
        assert own.get("score", 1) == pytest.approx(theirs.get("score", 1), abs=1e-5)


def test_classifiers_of_other_tokenizers_answer_by_their_mean():
    """Case 17 of PyText: DocNN and BiLSTM; the second has words, the first pieces and n-grams."""
    texts = ["wake me at ten", "play a song", "x"]
    words = ["tokenizer.type=fitted_words", "ngrams=null"]
    write_data("classification/docnn/local")
    textmill.train("classification/docnn/local", [*short("", 6), *QUIET], run_dir="a")
    textmill.train("classification/bilstm/local", [*short("", 6), *QUIET, *words], run_dir="b")
    textmill.ensemble(["a", "b"], "all")
    members = [textmill.load(run)(texts) for run in "ab"]
    wanted = [
        {name: (one.scores[name] + other.scores[name]) / 2 for name in one.scores}
        for one, other in zip(*members, strict=True)
    ]
    assert members[0][0].scores != pytest.approx(members[1][0].scores)
    shutil.rmtree("a")
    shutil.rmtree("b")
    found = textmill.load("all")(texts)
    for answer, scores in zip(found, wanted, strict=True):
        assert answer.scores == pytest.approx(scores, abs=1e-6)
        assert answer.label == max(scores, key=scores.get)
    evaluation = textmill.evaluate("all")["valid_data"]
    assert evaluation.values["accuracy"] == np.mean(
        [row["prediction"] == row["label"] for row in evaluation.rows]
    )
    exported_alike(texts)
    assert main(["runs", "verify", "all"]) == 0


def test_several_labels_pairs_and_numbers():
    words = ["labels.multiple=true", "task.sample_rate=0.7"]
    members, whole = joined(*["classification/docnn/local"] * 2, words=words)
    (answer,) = whole(["play it"])
    parts = [member(["play it"])[0] for member in members]
    for name, score in answer.scores.items():
        assert score == pytest.approx(np.mean([part.scores[name] for part in parts]), abs=1e-6)
    shutil.rmtree("all")
    for recipe, mean in (
        ("pairs/classification/local", lambda answer: [*answer.scores.values()]),
        ("regression/docnn/local", lambda answer: answer.number),
    ):
        members, whole = joined(recipe, recipe)
        row = dict.fromkeys(whole.columns, "wake me")
        parts = [mean(member([row])[0]) for member in members]
        assert mean(whole([row])[0]) == pytest.approx(np.mean(parts, axis=0), abs=1e-6)
        shutil.rmtree("all")


def test_words_have_the_mean_of_their_probabilities():
    members, whole = joined(*["tagging/bilstm/local"] * 2)
    words = "Ann met Bob"

    def chances(task):
        (batch,) = task._epochs(
            task.text.encode([{"words": words}], with_targets=False),
            textmill.data.batching.Batching(shuffle=False),
            seed=0,
        )
        with torch.no_grad():
            return task.scores(batch).softmax(dim=-1)[0].numpy()

    wanted = np.mean([chances(member.task) for member in members], axis=0)
    np.testing.assert_allclose(chances(whole.task), wanted, atol=1e-6)
    (answer,) = whole([words])
    np.testing.assert_allclose(answer.scores, wanted.max(axis=1), atol=1e-6)


def test_random_fields_have_the_geometric_mean_of_sequences():
    """Against every sequence of labels of three words, scored by each member alone."""
    members, whole = joined(*["tagging/bilstm-crf/local"] * 2, words=["optimizer.lr=0.1"])
    words = {"words": "Ann met Bob"}

    def scored(member):
        task = member.task
        encoded = task.text.encode([words], with_targets=False)
        batching = textmill.data.batching.Batching(shuffle=False)
        (batch,) = task._epochs(encoded, batching, seed=0)
        with torch.no_grad():
            return task.scores(batch)[0].double(), task.head.crf.answering_transitions().double()

    parts = [scored(member) for member in members]
    size = parts[0][0].shape[1]
    logs = {}
    for path in product(range(size), repeat=3):
        way = [size, *path, size + 1]
        logs[path] = np.mean(
            [
                sum(float(moves[a, b]) for a, b in pairwise(way))
                + sum(float(scores[at, label]) for at, label in enumerate(path))
                for scores, moves in parts
            ]
        )
    best = max(logs, key=logs.get)
    (answer,) = whole([words])
    names = whole.task.text.targets["tags"].labels.names
    assert answer.tags == tuple(names[label] for label in best)
    shares = np.exp(np.array([*logs.values()]) - logs[best])
    first = sum(s for p, s in zip(logs, shares, strict=True) if p[0] == best[0]) / shares.sum()
    assert answer.scores[0] == pytest.approx(first, abs=1e-5)
    exported_alike([words["words"], "Bob met Ray ."])


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joint/bilstm-crf", "tagging/bilstm", "regression/docnn"])
def test_what_else_exports_does_so_as_an_ensemble(name):
    members, whole = joined(*[f"{name}/local"] * 2)
    texts = ["wake me at nine", "play"]
    for answer, *parts in zip(whole(texts), *(member(texts) for member in members), strict=True):
        assert answer != parts[0]
    exported_alike(texts)


def test_other_runs_are_refused_with_what_differs():
    for name in (
        "classification/docnn/local",
        "pairs/classification/local",
        "bert/pretraining/local",
    ):
        write_data(name)
        textmill.train(name, [*short(name), *QUIET], run_dir=name.partition("/")[0])
    Path("data/train.tsv").write_text("b\tno\na\tyes\n")
    words = ["train_data.path=data/train.tsv", "valid_data.path=data/train.tsv"]
    textmill.train("classification/docnn/local", [*short(""), *QUIET, *words], run_dir="other")
    with pytest.raises(UserError, match=r"'b', 'a'.*not label: 'alarm', 'music'.*labels.names"):
        textmill.ensemble(["classification", "other"], "all")
    with pytest.raises(UserError, match="Member 2 is a PairClassification, but member 1 is a Doc"):
        textmill.ensemble(["classification", "pairs"], "all")
    with pytest.raises(UserError, match="MaskedLanguageModeling cannot be a member"):
        textmill.ensemble(["bert", "bert"], "all")
    with pytest.raises(UserError, match="two runs or more"):
        textmill.ensemble(["classification"], "all")
    with pytest.raises(UserError, match="other is there already"):
        textmill.ensemble(["classification", "classification"], "other")
    assert not Path("all").exists()


def test_a_run_learns_from_its_own_share_of_the_rows(caplog):
    caplog.set_level("INFO")
    rows = sampled(10_000, 0.8, seed=1)
    assert len(rows) == pytest.approx(8000, abs=5 * 40)  # five standard deviations
    assert {*rows} < {*range(10_000)}
    both = {*rows} & {*sampled(10_000, 0.8, seed=2)}
    assert len(both) == pytest.approx(6400, abs=5 * 48)
    assert {*rows[rows < 50]} == {*sampled(50, 0.8, seed=1)}  # each row for itself
    name = "classification/docnn/local"
    write_data(name)
    words = [*short(name), *QUIET, "task.sample_rate=0.5"]
    run = textmill.train(name, words, run_dir="half")
    counts = [m for m in caplog.messages if m.startswith("train_data: Learns from")]
    assert len(counts) == 1
    assert 0 < int(counts[0].split()[3]) < 8
    assert run.result["steps"] == 2
    with pytest.raises(UserError, match=r"task.sample_rate must be above 0 and at most 1"):
        textmill.train(name, [*words, "task.sample_rate=0"], run_dir="none")
