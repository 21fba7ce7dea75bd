"""Experiments of trees over a sentence's own words; set ``train_data.path``, ``valid_data.path``.

They want what ``parsing/top`` wants, domain, sentence and tree, and label each word with what opens
and closes at it, where ``parsing/top`` writes the tree word by word.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.recipes.experiments.tagging import SMALL_LSTM, tagging_bilstm
from textmill.recipes.experiments.tagging import local as smaller
from textmill.recipes.experiments.tiny import register_with_local
from textmill.tasks.tagging import TreeTagging
from textmill.text.features.tree_tags import FittedTreeTags
from textmill.training import Selection


@register_with_local("trees/bilstm", partial(smaller, encoder=SMALL_LSTM))
def trees_bilstm() -> Recipe:
    """A BiLSTM over words and their characters; what opens and closes at a word is its label."""
    made = tagging_bilstm().ingredients
    column = {"column": "source"}
    changed = {
        "train_data": TextRows.Config(
            path=Path("data/top/train.tsv"), columns={"source": 1, "target": 2}, batch_size=16
        ),
        "valid_data": like("train_data", path=Path("data/top/dev.tsv"), shuffle=False),
        "tokenizer": replace(made["tokenizer"], columns=("source",)),
        "characters": replace(made["characters"], **column),
        "affixes": replace(made["affixes"], **column),
        "labels": FittedTreeTags.Config(),
        "task": TreeTagging.Config(),
        "trainer": replace(
            made["trainer"], max_epochs=20, selection=Selection.Config(metric="exact_match")
        ),
    }
    return Recipe("Train a BiLSTM that parses sentences into trees.", **{**made, **changed})
