"""Numbers of each word: what they tell decides its label, in batches without a word, too."""

import json

import pytest

from tests.tasks.rows import data_of, evaluated, learn
from textmill.errors import DataError, UserError
from textmill.inference import Predictor
from textmill.models.tagger import Tagger
from textmill.tasks.tagging import WordTagging
from textmill.text.columns.numbers import FittedNumbers, FittedWordNumbers
from textmill.text.features.labels import FittedLabels
from textmill.text.processors.text_processor import load_text_processor
from textmill.text.tokenizers.word_tokenizer import FittedWords


def row(*numbers):
    """Words that are all alike, each with a label by its last number."""
    tags = ["high" if sum(each[-1:]) > 100 else "low" for each in numbers]
    return {"words": ["it"] * len(numbers), "tags": tags, "dense": json.dumps([*numbers])}


ROWS = [row([900], [10]), row(), row([20], [700], [30]), row([800])]
PAIRS = [row([0.1, 900], [0.3, 10]), row(), row([0.2, 20], [0.1, 700], [0.3, 30])]
Data = data_of(ROWS, batch_size=2)


def make(rows, kind=FittedWordNumbers):
    given = {
        "tokenizer": FittedWords.Config(columns=("words",)).build(train_data=rows),
        "labels": FittedLabels.Config(column="tags", multiple=True).build(train_data=rows),
        "dense": kind.Config().build(train_data=rows),
    }
    return WordTagging.Config().build(module=Tagger.Config().build(**given), **given)


@pytest.mark.parametrize("rows", [ROWS, PAIRS], ids=["one", "two"])
def test_labels_are_what_the_numbers_say(rows, tmp_path):
    task = make(rows)
    learn(task, task.batches(Data(rows), train=True, seed=1), epochs=40, lr=0.02)
    assert evaluated(task, Data(rows, batch_size=1)).values["token_accuracy"] == 1
    task.text.save(tmp_path)
    task.use_text(load_text_processor(tmp_path))
    answers = Predictor(task)([task.asked(each) for each in rows])
    assert [list(answer.tags) for answer in answers] == [each["tags"] for each in rows]


def test_they_are_normalized_over_the_words():
    numbers = make(ROWS).text.ingredients["dense"]
    assert numbers.mean.tolist() == pytest.approx([2460 / 6])


def test_a_column_without_any_number_is_named():
    with pytest.raises(DataError, match=r"^The column 'dense' .* no number to take"):
        make([row([], [])])


WRONG = {
    "[[1]]": r"Row 0, column 'dense': has 1 lists of numbers, but 'words' has 2 words",
    "[[1], [1, 2]]": r"Row 0, column 'dense': wanted 1 numbers, found 2",
    "[1, 2]": r"Row 0, column 'dense': wanted a list of numbers for each word, as \[\[0.5, 2\]",
    "[[1], [1e300]]": r"Row 0, column 'dense': wanted a number that a float32 holds, found 1e\+300",
}


@pytest.mark.parametrize("cell", WRONG)
def test_what_fits_no_words_is_named(cell):
    with pytest.raises(DataError, match=WRONG[cell]):
        make(ROWS).batches([{**ROWS[0], "dense": cell}], train=False, seed=1)


def test_numbers_of_a_text_are_none_of_words():
    texts = [{**each, "dense": "[1, 2]"} for each in ROWS]
    with pytest.raises(UserError, match=r"must be a list for each word: set dense\.type=words"):
        make(texts, FittedNumbers)
