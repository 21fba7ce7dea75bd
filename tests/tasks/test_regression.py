"""Regression of documents: loss, units, answers, and numbers that cannot be."""

import numpy as np
import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import UserError
from textmill.inference import Predictor
from textmill.models.classifier import Regressor
from textmill.tasks import evaluate
from textmill.tasks.regression import DocumentRegression
from textmill.text.columns.numbers import FittedNumbers
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords

ROWS = [
    {"text": "a plane takes off", "score": "5.000", "dense": "1 0"},
    {"text": "a man plays", "score": "3.8", "dense": "0 2"},
    {"text": "", "score": "0", "dense": "3 1"},
    {"text": "a man plays the flute and sings", "score": "1.25", "dense": "2 2"},
]

Data = data_of(ROWS, batch_size=3)


def make(*, dense=False, ngrams=False, **settings):
    torch.manual_seed(0)
    given = {
        "tokenizer": FittedWords.Config().build(train_data=ROWS),
        **({"dense": FittedNumbers.Config().build(train_data=ROWS)} if dense else {}),
        **({"ngrams": FittedNgrams.Config().build(train_data=ROWS)} if ngrams else {}),
    }
    module = Regressor.Config(dropout=0.0).build(**given)
    return DocumentRegression.Config(**settings).build(module=module, **given)


VARIANTS = {
    "plain": {}, "span": {"span": (0.0, 5.0)}, "dense": {"dense": True},
    "n-grams": {"ngrams": True},
}  # fmt: skip


@pytest.fixture(params=VARIANTS)
def task(request):
    return make(**VARIANTS[request.param])


def test_the_loss_is_the_squared_error_of_the_answers(task):
    found = evaluate(task, task.batches(Data(batch_size=9), train=False, seed=1))
    gold = np.array([float(row["score"]) for row in ROWS])
    given = np.array([row["prediction"] for row in found.rows])
    error = ((gold - given) ** 2).mean()
    unit = 1.0 if task.config.span is None else 5.0
    assert found.values["mse"] == pytest.approx(error, rel=1e-4)
    assert found.values["loss"] == pytest.approx(error / unit**2, rel=1e-4)
    assert found.values["pearson"] == pytest.approx(np.corrcoef(gold, given)[0, 1], abs=1e-4)


def test_it_learns_the_rows_by_heart(task):
    batches = task.batches(Data(batch_size=9), train=True, seed=1)
    learn(task, batches, epochs=60, lr=0.01)
    inputs = [{k: row[k] for k in task.text.input_columns} for row in ROWS]
    answers = Predictor(task)(inputs)
    assert [a.number for a in answers] == pytest.approx([5.0, 3.8, 0.0, 1.25], abs=0.2)
    assert float(str(answers[0])) == pytest.approx(5.0, abs=0.2)


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"must be finite and rise, but is from 5.0 to 0.0"):
        make(span=(5.0, 0.0))
