"""The table of tasks names what there is."""

import re
from pathlib import Path

from textmill.recipes import registries

PAGE = Path(__file__).parents[2] / "docs" / "tasks.md"


def test_every_name_in_the_table_is_registered():
    rows = [
        line.split("|")[1:4] for line in PAGE.read_text().splitlines() if line.startswith("| `")
    ]
    assert len(rows) > 5
    for (task, *_), experiments, models in ([re.findall(r"`([^`]+)`", c) for c in r] for r in rows):
        assert task in registries.tasks.names()
        assert set(experiments) <= set(registries.experiments.names())
        assert set(models) <= set(registries.models.names())
        assert experiments
        assert models
