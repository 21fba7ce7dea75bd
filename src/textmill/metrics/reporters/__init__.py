"""Reporters: where the values of a run and its examples go. Each kind is a component."""

from textmill.metrics.reporters.reporter import Progress as Progress
from textmill.metrics.reporters.reporter import Reporter as Reporter
from textmill.metrics.reporters.reporter import Reporters as Reporters
from textmill.metrics.reporters.reporter import RunInfo as RunInfo
