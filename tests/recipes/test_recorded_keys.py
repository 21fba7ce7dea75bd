"""Runs are found again by their keys: those of experiments are what they were when recorded."""

import json
from pathlib import Path

from textmill.config.planning.key import run_key
from textmill.recipes.planning import plan_recipe

# A key that changes makes other runs of all that were made with it: that is said in CHANGELOG.md.
RECORDED = json.loads(Path(__file__).with_name("recorded_keys.json").read_text())


def test_keys_are_what_they_were_wherever_components_have_gone():
    found = {}
    for command in RECORDED:
        name, *words = command.split()
        found[command] = run_key(plan_recipe(name, words, targets=["trainer"]).plan)
    assert found == RECORDED
