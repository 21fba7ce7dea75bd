"""Retrieval: places by brute force, texts that are in several rows, ties, limits."""

import math

import numpy as np
import pytest

from textmill.metrics.label_scores import Retrieval
from textmill.metrics.metric import MetricError

DRAW = np.random.default_rng(3)


def measured(texts, vectors, **settings):
    metric = Retrieval(**settings)
    metric.update(texts, np.asarray(vectors, np.float32))
    return metric


def test_places_are_those_of_a_loop():
    texts = [(f"q{n}", f"t{n % 7}", f"wrong {n}") for n in range(20)]
    found = {text: DRAW.normal(size=3) for row in texts for text in row}
    vectors = np.array([[found[text] for text in row] for row in texts])
    known = sorted({text for row in texts for text in row[1:]})

    def cosine(a, b):
        return a @ b / np.linalg.norm(a) / np.linalg.norm(b)

    places = []
    for question, right, _ in texts:
        own = cosine(found[question], found[right])
        nearer = sum(cosine(found[question], found[t]) > own for t in known if t != right)
        places.append(1 + nearer)
    values = measured(texts, vectors).compute()
    assert values["recall_at_1"] == np.mean([place == 1 for place in places])
    assert values["recall_at_10"] == np.mean([place <= 10 for place in places])
    assert values["mrr"] == pytest.approx(np.mean([1 / place for place in places]))


def test_a_text_in_two_rows_is_one_and_rows_that_are_equal_count_once():
    one, two = [1.0, 0.0], [0.0, 1.0]
    texts = [("a", "x"), ("b", "x"), ("b", "x"), ("c", "y")]
    values = measured(texts, [[one, one], [one, one], [one, one], [two, two]]).compute()
    assert values == {"recall_at_1": 1.0, "recall_at_10": 1.0, "mrr": 1.0}


def test_another_text_that_is_as_near_stands_before_the_right_one():
    same = [[0.6, 0.8], [0.6, 0.8]]
    assert measured([("a", "x"), ("b", "y")], [same, same]).compute()["mrr"] == 0.5


def test_of_too_many_rows_some_are_measured_and_that_is_said():
    texts = [(str(n), f"text {n}") for n in range(50)]
    vectors = DRAW.normal(size=(50, 2, 4))
    whole, back = (
        measured(t, v, limit=10) for t, v in ((texts, vectors), (texts[::-1], vectors[::-1]))
    )
    assert whole.compute() == back.compute()
    assert whole.details()["mrr"] == "among 10 of the rows"
    assert measured(texts, vectors).details() == {}


def test_vectors_that_are_not_finite_are_said():
    metric = measured([("a", "x")], [[[1.0], [math.nan]]])
    assert all(math.isnan(value) for value in metric.compute().values())
    assert metric.details()["mrr"] == "vectors are not finite"
    zero = measured([("a", "x"), ("b", "y")], np.zeros((2, 2, 3)))
    assert zero.compute()["recall_at_1"] == 0


def test_texts_without_vectors_are_refused():
    with pytest.raises(MetricError, match=r"a vector of each text of 1 rows, .* \[1, 3, 2\]"):
        measured([("a", "x")], np.zeros((1, 3, 2)))
    assert all(math.isnan(value) for value in Retrieval().compute().values())
