"""Reporters: where the values of a run and its examples go. Each kind is a component."""

from weft.metrics.reporters.reporter import Progress as Progress
from weft.metrics.reporters.reporter import Reporter as Reporter
from weft.metrics.reporters.reporter import Reporters as Reporters
from weft.metrics.reporters.reporter import RunInfo as RunInfo
