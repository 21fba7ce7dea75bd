"""The variants ``…/local`` of experiments: seconds on a laptop, to see that all fits together.

Those of ``bert``, ``language``, ``question`` and ``regression/docnn`` are experiments of their own:
their trainers are others, of more steps, or with another warm-up and other evaluations.
"""

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import Any, TypeAlias

from textmill.config.recipe import Recipe, register_experiment
from textmill.training import Every, Linear

STEPS = 20
Make: TypeAlias = Callable[[], Recipe]


def tiny(recipe: Recipe, **changed: Any) -> Recipe:
    """The recipe of 20 steps, with some ingredients in place of its own, such as a small model.

    Example:
        >>> from textmill.recipes.experiments.tagging import tagging_ner
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


def register_with_local(
    name: str, small: Callable[[Recipe], Recipe] = tiny
) -> Callable[[Make], Make]:
    """Files an experiment, and as ``name/local`` what ``small`` makes of its recipe."""

    def register(experiment: Make) -> Make:
        @wraps(experiment)
        def local() -> Recipe:
            return small(experiment())

        local.__doc__ = f"``{name}`` in seconds."
        local.__qualname__ = f"{experiment.__qualname__}_local"
        register_experiment(f"{name}/local")(local)
        register_experiment(name)(experiment)
        return experiment

    return register
