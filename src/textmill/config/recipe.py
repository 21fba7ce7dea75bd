"""Recipes written in Python: a registered function that returns a table of ingredients."""

from collections.abc import Callable
from typing import Any

from textmill.config.ingredient import Like
from textmill.config.registry import Registry


class Recipe:
    """A table of ingredients by name: Configs, components, functions, classes, ``like(...)``.

    Example:
        >>> def tokenizer(size: int = 100) -> list[str]: ...
        >>> recipe = Recipe("Counts words.", tokenizer=tokenizer)
        >>> recipe.doc, list(recipe.ingredients)
        ('Counts words.', ['tokenizer'])
    """

    def __init__(self, doc: str = "", /, **ingredients: Any) -> None:
        self.doc = doc or str(ingredients.pop("doc", ""))
        self.ingredients = ingredients


def like(name: str, /, **settings: Any) -> Like:
    """An ingredient that is as another is, but for these settings.

    ``valid_data = like("train_data", path=Path("dev.tsv"), shuffle=False)`` follows every setting
    of ``train_data``, wherever that was set; the run's ``config.yaml`` has it written out.
    """
    return Like(name, settings)


experiments = Registry("experiment", plural="experiments")
"""Functions that return a :class:`Recipe`, by their names on the command line."""


def register_experiment(name: str) -> Callable[[Any], Any]:
    """Files a function that returns a :class:`Recipe` under a name for the command line."""
    return experiments.register(name)
