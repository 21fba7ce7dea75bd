"""The variants ``…/local`` of experiments: seconds on a laptop, to see that all fits together.

Those of ``bert``, ``language``, ``question`` and ``regression`` are not made by it: their trainers
are others, of more steps, or with another warm-up and other evaluations.
"""

from dataclasses import replace
from typing import Any

from weft.config.recipe import Recipe
from weft.training import Linear
from weft.training.progress import Every

__all__ = ["tiny"]

STEPS = 20


def tiny(recipe: Recipe, **changed: Any) -> Recipe:
    """The recipe of 20 steps, with some ingredients in place of its own, such as a small model.

    Example:
        >>> from weft.recipes.experiments.tagging import tagging_ner
        >>> tiny(tagging_ner()).ingredients["trainer"].max_steps
        20
    """
    made = {**recipe.ingredients, "lr_scheduler": Linear.Config(warmup_steps=2), **changed}
    trainer = replace(made["trainer"], max_steps=STEPS, max_epochs=None)
    if trainer.evaluate_every.unit == "steps":
        trainer = replace(trainer, evaluate_every=Every(STEPS, "steps"))
    made["trainer"] = trainer
    return Recipe(
        doc=f"{recipe.doc} A tiny model and {STEPS} steps, to see that all works.", **made
    )
