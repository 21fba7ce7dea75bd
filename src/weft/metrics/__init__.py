"""Metrics that stream and merge exactly, and reporters that take their values to people and files."""

from weft.metrics.metric import Direction as Direction
from weft.metrics.metric import Metric as Metric
from weft.metrics.metric import MetricError as MetricError
