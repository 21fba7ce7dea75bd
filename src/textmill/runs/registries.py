"""The report's name among the reporters, beside all that rooms below have."""

from textmill.recipes.registries import all_registries as all_registries
from textmill.recipes.registries import reporters as reporters

reporters.add({"textmill.runs.report.reporter": ["html"]})
