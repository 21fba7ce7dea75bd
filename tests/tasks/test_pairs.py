"""Pairs of texts: a label, or a number, for two texts; both are told apart, and read by one."""

import numpy as np
import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.inference import Predictor
from textmill.models.encoders.sequence import AveragingEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.pairs import PairClassifier, PairRegressor
from textmill.tasks import evaluate
from textmill.tasks.classification import PairClassification
from textmill.tasks.regression import PairRegression
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.word_tokenizer import FittedWords

SMALL = {
    "embedding": WordEmbedding.Config(dim=12), "encoder": AveragingEncoder.Config(word_dropout=0.0),
    "hidden": (24,), "dropout": 0.0,
}  # fmt: skip
ROWS = [
    {"label": "same", "text1": "a plane takes off", "text2": "an air plane takes off", "score": 5},
    {"label": "other", "text1": "a man plays", "text2": "a woman sings and sings", "score": "1.5"},
    {"label": "other", "text1": "", "text2": "a man", "score": "0"},
    {"label": "same", "text1": "a woman sings", "text2": "a woman is singing", "score": "3.8"},
    {"label": "same", "text1": "off", "text2": "", "score": "2"},
]

Data = data_of(ROWS, batch_size=3)


def make(kind="label", rows=ROWS, **settings):
    torch.manual_seed(0)
    tokenizer = FittedWords.Config(columns=("text1", "text2")).build(train_data=rows)
    if kind == "number":
        module = PairRegressor.Config(**SMALL).build(tokenizer=tokenizer)
        return PairRegression.Config(**settings).build(module=module, tokenizer=tokenizer)
    given = {"tokenizer": tokenizer, "labels": FittedLabels.Config().build(train_data=rows)}
    module = PairClassifier.Config(**SMALL).build(**given)
    return PairClassification.Config(**settings).build(module=module, **given)


VARIANTS = {"label": {}, "number": {"kind": "number"}}


@pytest.fixture(params=VARIANTS)
def task(request):
    return make(**VARIANTS[request.param])


def test_it_learns_the_rows_by_heart(task):
    batches = task.batches(Data(batch_size=9), train=True, seed=1)
    learn(task, batches, epochs=80, lr=0.02)
    answers = Predictor(task)([{k: r[k] for k in ("text1", "text2")} for r in ROWS])
    if isinstance(task, PairRegression):
        gold = [float(row["score"]) for row in ROWS]
        assert [a.number for a in answers] == pytest.approx(gold, abs=0.3)
    else:
        assert [a.label for a in answers] == [row["label"] for row in ROWS]


def test_the_error_of_numbers_is_in_their_units():
    task = make("number", span=(0.0, 5.0))
    found = evaluate(task, task.batches(Data(), train=False, seed=1))
    gold = np.array([float(row["score"]) for row in ROWS])
    given = np.array([row["prediction"] for row in found.rows])
    assert found.values["mse"] == pytest.approx(((gold - given) ** 2).mean(), rel=1e-4)
    assert found.values["loss"] == pytest.approx(found.values["mse"] / 25, rel=1e-4)
