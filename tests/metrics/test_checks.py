import pytest

from textmill.metrics.checks import aligned, distinct_labels
from textmill.metrics.classification import Classification
from textmill.metrics.metric import MetricError
from textmill.metrics.spans import Spans

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


def test_a_state_of_other_settings_is_refused_and_adds_nothing() -> None:
    metric, other = Classification(["ham", "spam"]), Classification(["spam", "ham"])
    other.update(["ham"], ["ham"])
    before = metric.state_dict()
    with pytest.raises(MetricError) as error:
        metric.merge(other)
    assert str(error.value) == (
        "A Classification counts with the settings {'labels': ['ham', 'spam'], 'positive': None}, "
        "but the state to add has {'labels': ['spam', 'ham'], 'positive': None} "
        "and the keys: counts, settings."
    )
    with pytest.raises(MetricError, match="the state to add has None and the keys: none"):
        metric.merge_state({})
    with pytest.raises(MetricError, match="scheme"):
        metric.load_state_dict(Spans().state_dict())
    assert metric.state_dict() == before


def test_long_settings_are_cut_in_a_message() -> None:
    metric = Classification([f"label {i}" for i in range(1000)])
    with pytest.raises(MetricError) as error:
        metric.merge_state({})
    assert len(str(error.value)) < 500
