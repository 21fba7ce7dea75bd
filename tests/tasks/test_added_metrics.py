"""Metrics that a recipe adds to a task's own: by name, or of a class of its own."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

import pytest

from tests.tasks.rows import evaluated
from tests.tasks.test_classification import Data, make
from textmill.errors import UserError
from textmill.metrics.accumulators import ExactMatch
from textmill.metrics.metric import MetricError, RowMetric
from textmill.metrics.streaming import Averaged


class ByTopic(Averaged, RowMetric):
    """Accuracy of rows about home, and of the others: a slice by another column of the data."""

    class Config(RowMetric.Config):
        pass

    config: Config

    def __init__(self, config):
        self.config = config
        super().__init__({"home_accuracy": "higher", "other_accuracy": "higher"})

    @property
    def columns(self):
        return ("label",)

    def update(self, topics: Sequence[str], right: Sequence[bool]) -> None:
        for topic, good in zip(topics, right, strict=True):
            self.add("home_accuracy" if "home" in topic else "other_accuracy", good)

    def measure(self, rows: Sequence[Mapping[str, Any]]) -> None:
        right = [row["prediction"] == row["label"] for row in rows]
        self.update([row["topics"] for row in rows], right)


def test_a_metric_of_ones_own_sees_every_row_with_its_answer():
    found = evaluated(make(metrics=(ByTopic.Config(),)), Data())
    right = Counter(
        ("home" in row["topics"], row["prediction"] == row["label"]) for row in found.rows
    )
    assert found.values["home_accuracy"] == right[True, True] / 2
    assert found.values["other_accuracy"] == right[False, True] / 3
    assert found.directions["home_accuracy"] == "higher"
    plain = evaluated(make(), Data())
    assert {n: v for n, v in found.values.items() if n in plain.values} == plain.values


def test_a_metric_of_the_library_is_held_against_the_column_that_it_names():
    found = evaluated(make(metrics=(ExactMatch.Config(target="label"),)), Data())
    assert found.values["exact_match"] == found.values["accuracy"]


class Halved(ByTopic):
    """A value of a name that the task has."""

    class Config(ByTopic.Config):
        pass

    def __init__(self, config):
        Averaged.__init__(self, {"accuracy": "higher"})

    def measure(self, rows):
        self.add("accuracy", 0.5)


def test_a_value_of_a_name_that_the_task_has_takes_its_place():
    assert evaluated(make(metrics=(Halved.Config(),)), Data()).values["accuracy"] == 0.5


def test_a_column_that_the_task_does_not_read_is_refused_before_training():
    with pytest.raises(UserError) as caught:
        make(metrics=(ExactMatch.Config(),)).metrics()
    assert str(caught.value).startswith("task.metrics[0] (ExactMatch) reads the column 'target',")


def test_answers_that_are_no_texts_are_refused():
    metric = ExactMatch.Config(target="score").build()
    with pytest.raises(MetricError, match=r"^ExactMatch compares texts, but of the columns"):
        metric.measure([{"prediction": 2.0, "score": "3"}])
