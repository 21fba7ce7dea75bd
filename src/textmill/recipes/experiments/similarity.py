"""Experiments of how alike two texts are; set ``train_data.path`` and ``valid_data.path``.

Rows are text1, text2 and a score, in any unit, which is higher the more alike they are.
"""

from textmill.config.recipe import Recipe
from textmill.models.ngrams import NgramPairRegressor
from textmill.recipes.experiments.ngrams import MOST, local_ngrams, ngrams
from textmill.recipes.experiments.tiny import register_with_local
from textmill.tasks.regression import PairRegression


@register_with_local("similarity/ngrams", local_ngrams)
def similarity_ngrams() -> Recipe:
    """A ridge regression over the n-grams that two texts share, and those of each."""
    return ngrams(
        "Train a linear model over the n-grams of two texts that says how alike they are.",
        ("text1", "text2", "score"),
        "pearson",
        model=NgramPairRegressor.Config(),
        task=PairRegression.Config(max_length=MOST),
    )
