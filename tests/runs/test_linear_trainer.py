"""Experiments of n-grams as a person runs them: solved, resumed, refused."""

import json
import os
import random
import signal
from pathlib import Path

import numpy as np
import pytest
import torch
from scipy.sparse import csr_matrix
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import Ridge
from sklearn.preprocessing import normalize
from sklearn.svm import LinearSVC

import textmill
from textmill.errors import PlanError, RunStoppedError, UserError
from textmill.runtime.devices import Env
from textmill.training import LinearTrainer, linear_trainer

WORDS = {"ham": "lunch home later soon", "spam": "prize free win cash", "news": "rain vote wind"}


def write(path, columns, count=60, seed=0):
    """Rows whose label, and whose number, can be told from some of their words."""
    chance = random.Random(seed)
    lines = []
    for number in range(count):
        label = [*WORDS][number % len(WORDS)]
        text = " ".join(chance.choices([*WORDS[label].split(), "you", "a", "the"], k=5))
        other = " ".join(chance.choices([*text.split(), "then"], k=3))
        cells = {"label": label, "text": text, "text1": text, "text2": other}
        cells |= {"labels": f"{label} {'long' if len(text) > 20 else 'short'}"}
        cells |= {"score": str(text.count("the") + text.count("prize") / 2), "dense": "0.5 2"}
        lines.append("\t".join(cells[name] for name in columns) + "\n")
    path.write_text("".join(lines))


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    write(tmp_path / "train.tsv", ("label", "text"))
    write(tmp_path / "valid.tsv", ("label", "text"), seed=1)
    return tmp_path


QUIET = ["train_data.path=train.tsv", "valid_data.path=valid.tsv", "reporters.console=false"]
ONE = [*QUIET, "trainer.costs=[0.3,1]"]


def train(words=ONE, *, name="classification/ngrams", run="run"):
    return textmill.train(name, words, run_dir=run)


def weights(run="run"):
    return {n: p.clone() for n, p in textmill.load(run).task.module.state_dict().items()}


def first_line(run="run"):
    return json.loads(Path(run, "metrics.jsonl").read_text().splitlines()[0])


def by_hand(run, texts):
    """The numbers of texts, from the weights of their n-grams; and what the run gives them."""
    task = textmill.load(run).task
    tokenizer = task.text.ingredients["tokenizer"]
    encode = tokenizer.create_encoder()
    table = np.zeros((len(texts), len(tokenizer.weights)))
    for row, text in enumerate(texts):
        ids = encode(text)
        for kind in (ids < 2 + tokenizer.words, ids >= 2 + tokenizer.words):
            values = tokenizer.weights[ids[kind]].astype(np.float64)
            table[row, ids[kind]] = values / max(1e-9, np.linalg.norm(values))
    batch = encode.batch(texts)
    ids = torch.from_numpy(batch.padded(range(len(texts)), 0))
    with torch.no_grad():
        scores = task.module(ids, torch.tensor(batch.lengths)).numpy()
    return csr_matrix(table), scores


def cells(path):
    rows = [line.split("\t") for line in Path(path).read_text().splitlines()]
    return [row[0] for row in rows], [row[1] for row in rows]


def test_scores_are_the_decisions_of_linearsvc_on_the_same_numbers():
    assert train().result["steps"] == 1
    labels, texts = cells("train.tsv")
    rows, scores = by_hand("run", texts)
    theirs = LinearSVC(C=first_line()["cost"], random_state=1).fit(rows, labels)
    names = textmill.load("run").task.text.label.labels.names
    wanted = theirs.decision_function(rows)[:, [theirs.classes_.tolist().index(n) for n in names]]
    factor = (scores * wanted).sum() / np.square(wanted).sum()
    np.testing.assert_allclose(scores, factor * wanted, atol=2e-3 * factor)
    answers = textmill.load("run")(texts)
    assert [answer.label for answer in answers] == theirs.predict(rows).tolist()
    for answer in answers:
        assert sum(answer.scores.values()) == pytest.approx(1, abs=1e-5)


def test_numbers_are_those_of_ridge_on_the_same_numbers(tmp_path):
    for name in ("train", "valid"):
        write(tmp_path / f"{name}.tsv", ("score", "text"))
    train(name="regression/ngrams")
    numbers, texts = cells("train.tsv")
    rows, scores = by_hand("run", texts)
    theirs = Ridge(alpha=1 / first_line()["cost"]).fit(rows, [*map(float, numbers)])
    np.testing.assert_allclose(scores[:, 0], theirs.predict(rows), atol=1e-3)


CLASSIFY, TWO = "classification/ngrams", "train_data.columns={label: 0, text: 1}"
DENSE = ["train_data.columns=[label, text, dense]", "dense.type=fitted"]
KINDS = {
    "pairs": ("pairs/ngrams", ("label", "text1", "text2"), []),
    "several labels": (CLASSIFY, ("labels", "text"), [TWO, "labels.multiple=true"]),
    "dense": (CLASSIFY, ("label", "text", "dense"), DENSE),
    "weights": (CLASSIFY, ("label", "text"), ["task.loss.weights={spam: 3}"]),
    "one label": (CLASSIFY, ("score", "text"), [TWO]),
}


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_of_row_is_solved(kind, tmp_path):
    name, columns, words = KINDS[kind]
    for part in ("train", "valid"):
        write(tmp_path / f"{part}.tsv", columns, count=40)
    run = train([*ONE, *words], name=name)
    assert run.result["best"]["accuracy"] > (0.6 if kind == "one label" else 0.9)


def test_a_signal_between_two_costs_ends_the_run_and_the_same_command_goes_on(monkeypatch):
    train(run="undisturbed")
    solve = linear_trainer.solve

    def stopped(rows, solver, *, tried, **options):
        def told(cost, value):
            os.kill(os.getpid(), signal.SIGTERM)
            tried(cost, value)

        return solve(rows, solver, tried=told, **options)

    with monkeypatch.context() as patch:
        patch.setattr(linear_trainer, "solve", stopped)
        with pytest.raises(RunStoppedError, match="at step 0"):
            train()
    assert train().result["steps"] == 1
    found, wanted = weights(), weights("undisturbed")
    assert all(torch.equal(found[name], wanted[name]) for name in wanted)


REFUSED = {
    "trainer.costs=[]": "trainer.costs is empty",
    "trainer.costs=[1,0]": "trainer.costs must be positive",
    "trainer.folds=1": "trainer.folds must be at least 2",
    "trainer.max_epochs=3": "trainer has no setting 'max_epochs'",
    "model.type=classifier": "solves linear models of n-grams, and the model is a Classifier",
    "task.loss.type=binary_cross_entropy": "task.loss.weights alone can be set",
    "task.loss.label_smoothing=0.1": "task.loss.weights alone can be set",
}


@pytest.mark.parametrize("word", REFUSED)
def test_what_it_cannot_do_is_refused(word):
    with pytest.raises((PlanError, UserError), match=REFUSED[word].replace("[", r"\[")):
        train([*ONE, word])


def test_several_processes_are_refused():
    train()
    given = {"train_data": [], "reporters": [], "callbacks": [], "xp": None}
    task, env = textmill.load("run").task, Env(rank=0, world_size=2)
    with pytest.raises(UserError, match=r"in one process, and there are 2\. Leave --nproc out"):
        LinearTrainer.Config().build(task=task, env=env, **given)


def test_an_explanation_has_the_weights_that_scikit_learn_gives_each_ngram(folder):
    train(
        [
            *QUIET,
            "trainer.costs=[1.0]",
            "tokenizer.shapes=0",
            "tokenizer.characters=[1,0]",
            "tokenizer.words=1",
        ]
    )
    rows = [line.split("\t") for line in Path("train.tsv").read_text().splitlines()]
    kept = TfidfVectorizer(binary=True, token_pattern=r"\S+", norm=None)
    seen = np.sqrt(kept.fit_transform([text for _, text in rows]))  # the root of the frequencies
    table = normalize(seen)
    solved = LinearSVC(C=1.0, random_state=1).fit(table, [label for label, _ in rows])
    predictor = textmill.load("run")
    got, wanted = list[float](), list[float]()
    for text in ("free lunch for you", "the vote and the rain , the wind"):
        values = normalize(np.sqrt(kept.transform([text]))).toarray()[0]
        for label in WORDS:
            found = predictor.explain(text, label=label)
            coefficients = solved.coef_[[*solved.classes_].index(label)]
            places = [kept.vocabulary_[each.ngram] for each in found.ngrams]
            assert {*places} == {*np.flatnonzero(values)}
            got += [each.weight for each in found.ngrams]
            wanted += (coefficients * values)[places].tolist()
            weights_of = [abs(each.weight) for each in found.ngrams]
            assert weights_of == sorted(weights_of, reverse=True)
            assert {each.kind for each in found.ngrams} == {"words"}
    scale = np.dot(got, wanted) / np.dot(wanted, wanted)  # from decisions to log odds
    np.testing.assert_allclose(got, scale * np.array(wanted), atol=2e-3 * scale)
    train(ONE, run="whole")
    predictor = textmill.load("whole")
    found = predictor.explain("Free lunch, FREE!")
    module, task = predictor.task.module, predictor.task
    at = task.text.label.labels.names.index(found.label)
    ids = task.text.inputs["text"].encode(["Free lunch, FREE!"]).values
    with torch.no_grad():
        score = module(torch.from_numpy(ids)[None], torch.tensor([len(ids)]))[0, at]
        total = sum(each.weight for each in found.ngrams) + float(module.bias[at])
    assert total == pytest.approx(float(score), abs=1e-5)
    assert {each.kind for each in found.ngrams} == {"words", "characters"}
    assert "n-grams: '" in repr(found)
    assert predictor.explain("?!").ngrams == ()
