"""The report's name among the reporters, beside all that rooms below have."""

from weft.recipes.registries import all_registries as all_registries
from weft.recipes.registries import reporters as reporters

reporters.add({"weft.runs.html_reporter": ["html"]})
