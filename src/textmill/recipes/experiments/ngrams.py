"""What the experiments ``…/ngrams`` share: linear models of n-grams, which train in seconds."""

from dataclasses import replace
from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.training import LinearTrainer, Selection

MOST = 8192
"""N-grams of a text: those of a thousand words. A longer one loses its rarest."""


def ngrams(doc: str, columns: tuple[str, ...], metric: str, **ingredients: Any) -> Recipe:
    """A recipe that solves a linear model of n-grams."""
    texts = tuple(name for name in columns if name.startswith("text"))
    return Recipe(
        doc=doc,
        train_data=TextRows.Config(
            path=Path("data/train.tsv"), columns=columns, batch_size=1024, shuffle=False
        ),
        valid_data=like("train_data", path=Path("data/dev.tsv")),
        tokenizer=FittedNgrams.Config(columns=texts),
        trainer=LinearTrainer.Config(selection=Selection.Config(metric=metric)),
        **ingredients,
    )


def local_ngrams(recipe: Recipe) -> Recipe:
    """The recipe with one cost and two folds."""
    trainer = replace(recipe.ingredients["trainer"], costs=(1.0,), folds=2)
    made = {**recipe.ingredients, "trainer": trainer}
    return Recipe(doc=f"{recipe.doc} One cost is tried, to see that all works.", **made)
