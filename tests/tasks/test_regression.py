"""Regression of documents: loss, units, answers, and numbers that cannot be."""

import numpy as np
import pytest
import torch

from tests.tasks.rows import data_of, learn
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.classifier import Regressor
from textmill.tasks import evaluate
from textmill.tasks.regression import DocumentRegression
from textmill.text import load_text_processor
from textmill.text.columns.numbers import FittedNumbers
from textmill.text.metadata import SavedTextError
from textmill.text.processors.texts import Estimated
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
    "plain": {},
    "span": {"span": (0.0, 5.0)},
    "dense": {"dense": True},
    "n-grams": {"ngrams": True},
}


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
    assert set(found.directions) == set(found.values)


def test_it_learns_the_rows_by_heart_and_answers_so_after_loading(task, tmp_path):
    batches = task.batches(Data(batch_size=9), train=True, seed=1)
    learn(task, batches, epochs=60, lr=0.01)
    inputs = [{k: row[k] for k in task.text.input_columns} for row in ROWS]
    task.text.save(tmp_path)
    task.use_text(load_text_processor(tmp_path))
    answers = Predictor(task)(inputs)
    assert [a.number for a in answers] == pytest.approx([5.0, 3.8, 0.0, 1.25], abs=0.2)
    assert float(str(answers[0])) == pytest.approx(5.0, abs=0.2)


def test_numbers_that_cannot_be_are_errors_of_their_rows():
    rows = [ROWS[0], {"text": "a", "score": "much"}]
    with pytest.raises(DataError, match="Row 1, column 'score': wanted a number, found 'much'"):
        make().batches(Data(rows), train=True, seed=1)
    rows[1]["score"] = "5.5"
    with pytest.raises(DataError, match=r"Row 1, .*: wanted a number from 0 to 5, found '5.5'\."):
        make(span=(0.0, 5.0)).batches(Data(rows), train=True, seed=1)
    with pytest.raises(DataError, match="Row 0 has no column 'score'; its columns: text"):
        make().batches(Data([{"text": "a"}]), train=True, seed=1)


def test_settings_that_cannot_be_are_refused():
    with pytest.raises(UserError, match=r"task.max_length must be at least 1, but is 0"):
        DocumentRegression.Config(max_length=0)
    with pytest.raises(UserError, match=r"must be finite and rise, but is from 5.0 to 0.0"):
        make(span=(5.0, 0.0))


@pytest.mark.parametrize(
    ("low", "high", "error"),
    [("1.0", "null", "both 'low' and 'high'"), ("3", "2", "must be finite and rise")],
)
def test_a_saved_span_that_cannot_be_is_refused(tmp_path, low, high, error):
    make(span=(0.0, 5.0)).text.save(tmp_path)
    file = tmp_path / "columns" / "number" / "column.json"
    changed = file.read_text().replace('"low": 0.0', f'"low": {low}')
    file.write_text(changed.replace('"high": 5.0', f'"high": {high}'))
    with pytest.raises(SavedTextError, match=error):
        load_text_processor(tmp_path)


def test_an_answer_writes_itself_and_one_that_cannot_is_refused():
    task = make()
    assert task.answer_row(Estimated(3.80001)) == {"prediction": 3.80001}
    with pytest.raises(UserError) as error:
        task.answer_row(3.8)
    assert str(error.value) == (
        "DocumentRegression answers with a float, which has no method row(): write one, that gives "
        "plain data, or override answer_row(answer)."
    )
