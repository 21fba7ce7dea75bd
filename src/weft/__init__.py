"""weft trains, evaluates, exports and serves text models from one typed recipe.

The public names are imported when they are first used: ``import weft`` imports no torch.
"""

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.config.recipe import Recipe as Recipe
    from weft.config.recipe import like as like
    from weft.config.recipe import register_experiment as register_experiment
    from weft.recipes.reload import evaluate as evaluate
    from weft.recipes.reload import load as load
    from weft.recipes.run import Run as Run
    from weft.recipes.run import train as train

_WHERE = {
    "Recipe": "weft.config.recipe",
    "Run": "weft.recipes.run",
    "evaluate": "weft.recipes.reload",
    "like": "weft.config.recipe",
    "load": "weft.recipes.reload",
    "register_experiment": "weft.config.recipe",
    "train": "weft.recipes.run",
}

__all__ = ["Recipe", "Run", "evaluate", "like", "load", "register_experiment", "train"]


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        known = ", ".join(__all__)
        raise AttributeError(f"module 'weft' has no attribute '{name}'; it has: {known}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
