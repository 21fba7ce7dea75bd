"""Metrics that stream and merge exactly, and reporters that show and keep their values."""

from weft.metrics.metric import Direction as Direction
from weft.metrics.metric import Metric as Metric
from weft.metrics.metric import MetricError as MetricError
from weft.metrics.metric import RowMetric as RowMetric
