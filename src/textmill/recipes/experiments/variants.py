"""What experiments share: their variants ``/local``, and linear models of n-grams.

A variant ``/local`` takes seconds on a laptop, to see that all fits together.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from pathlib import Path
from typing import Any, TypeAlias

from textmill.config.recipe import Recipe, like, register_experiment
from textmill.data.text_rows import TextRows
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.training import Every, Linear, LinearTrainer, Selection

STEPS = 20
Make: TypeAlias = Callable[[], Recipe]


def tiny(recipe: Recipe, **changed: Any) -> Recipe:
    """The recipe with 20 steps, and with a tiny model or other ingredients in place of its own."""
    made = {**recipe.ingredients, "lr_scheduler": Linear.Config(warmup_steps=2), **changed}
    trainer = replace(made["trainer"], max_steps=STEPS, max_epochs=None)
    if trainer.evaluate_every.unit == "steps":
        trainer = replace(trainer, evaluate_every=Every(STEPS, "steps"))
    made["trainer"] = trainer
    return Recipe(**made)


def register_with_local(
    name: str, small: Callable[[Recipe], Recipe] = tiny
) -> Callable[[Make], Make]:
    """Registers an experiment, and what ``small`` makes of its recipe as ``name/local``."""

    def register(experiment: Make) -> Make:
        @wraps(experiment)
        def local() -> Recipe:
            return small(experiment())

        local.__doc__ = f"``{name}`` in seconds.\n\nIt shows whether all fits together."
        local.__qualname__ = f"{experiment.__qualname__}_local"
        register_experiment(f"{name}/local")(local)
        register_experiment(name)(experiment)
        return experiment

    return register


def ngrams(columns: tuple[str, ...], metric: str, **ingredients: Any) -> Recipe:
    """A recipe that solves a linear model of n-grams."""
    texts = tuple(name for name in columns if name.startswith("text"))
    return Recipe(
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
    return Recipe(**{**recipe.ingredients, "trainer": trainer})
