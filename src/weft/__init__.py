"""weft trains, evaluates, exports and serves text models from one typed recipe.

The public names are imported when they are first used: ``import weft`` imports no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.config.recipe import Recipe as Recipe
    from weft.config.recipe import like as like
    from weft.config.recipe import register_experiment as register_experiment
    from weft.config.recipe import register_task as register_task
    from weft.recipes.api import create_task as create_task
    from weft.recipes.api import run_experiment as run_experiment
    from weft.recipes.api import train_model as train_model
    from weft.recipes.reload import evaluate as evaluate
    from weft.recipes.reload import load as load
    from weft.recipes.run import Run as Run
    from weft.recipes.run import train as train

_WHERE = {
    "Recipe": "weft.config.recipe",
    "Run": "weft.recipes.run",
    "create_task": "weft.recipes.api",
    "evaluate": "weft.recipes.reload",
    "like": "weft.config.recipe",
    "load": "weft.recipes.reload",
    "register_experiment": "weft.config.recipe",
    "register_task": "weft.config.recipe",
    "run_experiment": "weft.recipes.api",
    "train": "weft.recipes.run",
    "train_model": "weft.recipes.api",
}

__all__ = [
    "Recipe",
    "Run",
    "create_task",
    "evaluate",
    "like",
    "load",
    "register_experiment",
    "register_task",
    "run_experiment",
    "train",
    "train_model",
]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        from weft.config.foreign_names import refuse_foreign_attribute

        refuse_foreign_attribute(f"weft.{name}")
        known = ", ".join(__all__)
        raise AttributeError(f"module 'weft' has no attribute '{name}'; it has: {known}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
