"""Metrics, and reporters that show and keep their values."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.metrics.metric import Direction as Direction
    from textmill.metrics.metric import Metric as Metric
    from textmill.metrics.metric import MetricError as MetricError
    from textmill.metrics.metric import RowMetric as RowMetric

__getattr__, __dir__ = on_first_use(__name__)
