import math

import pytest

from textmill.metrics.label_scores import Ranking
from textmill.metrics.metric import MetricError


def test_a_tie_is_wrong() -> None:
    metric = Ranking()
    metric.update([0.5, 0.5, 1.0, 0.0], [0.5, 0.25, 0.0, 1.0])
    assert metric.compute() == {
        "ranking_accuracy": 0.5,
        "avg_score_difference": 0.0625,
        "num_examples": 4.0,
    }


def test_a_score_that_is_no_number_is_wrong_and_shows() -> None:
    metric = Ranking()
    metric.update([math.nan, 1.0], [0.0, 0.0])
    assert metric.compute()["ranking_accuracy"] == 0.5
    assert math.isnan(metric.compute()["avg_score_difference"])


def test_the_difference_is_exact() -> None:
    metric = Ranking()
    metric.update([1e16, 1.0, -1e16], [0.0, 0.0, 0.0])
    assert metric.compute()["avg_score_difference"] == 1 / 3


def test_one_of_each_a_row() -> None:
    with pytest.raises(MetricError, match=r"Ranking needs .* given 1 and 2 of them"):
        Ranking().update([1.0], [1.0, 2.0])
