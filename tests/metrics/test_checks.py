import pytest

from textmill.metrics.checks import aligned, distinct_labels
from textmill.metrics.classification import Classification
from textmill.metrics.metric import MetricError

METRIC = Classification(["ham", "spam"])


def test_lengths_that_differ_are_named() -> None:
    with pytest.raises(MetricError) as error:
        aligned(METRIC, ["ham", "ham"], ["ham"])
    assert str(error.value) == (
        "Classification needs what is right and what was predicted for the same rows, "
        "but was given 2 and 1 of them."
    )


def test_a_bare_string_is_no_list_of_rows() -> None:
    with pytest.raises(MetricError, match="an entry per row, but was given the string 'ham'"):
        METRIC.update("ham", ["ham"] * 3)


def test_labels_stand_there_once() -> None:
    with pytest.raises(MetricError, match=r"each label once, but has twice: \['a'\]"):
        distinct_labels(METRIC, ["a", "b", "a"])
    with pytest.raises(MetricError, match="a list of the labels, but was given none"):
        distinct_labels(METRIC, [])
    with pytest.raises(MetricError, match="but was given the string 'ab'"):
        distinct_labels(METRIC, "ab")
