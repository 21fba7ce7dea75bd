import pytest

from textmill.errors import UserError
from textmill.metrics.metric import MetricError
from textmill.metrics.streaming import Accuracy, Mean


def test_metrics_of_different_kinds_are_not_merged() -> None:
    with pytest.raises(
        MetricError,
        match=r"^A Mean can only be merged with a Mean, but was given a Accuracy\.$",
    ):
        Mean("loss").merge(Accuracy())
    assert issubclass(MetricError, UserError)


def test_a_metric_merged_with_itself_counts_twice() -> None:
    mean = Mean("loss")
    mean.update(3.0, 2)
    mean.merge(mean)
    assert mean.state_dict() == {"total": "6", "count": "4"}
