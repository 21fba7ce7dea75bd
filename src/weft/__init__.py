"""weft trains, evaluates and exports text models from one typed recipe, and answers with them.

The public names are imported when they are first used: ``import weft`` imports no torch.
"""

import importlib
import sys
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from weft.config.recipe import Recipe as Recipe
    from weft.config.recipe import like as like
    from weft.config.recipe import register_experiment as register_experiment
    from weft.config.recipe import register_task as register_task
    from weft.runs.load_run import evaluate as evaluate
    from weft.runs.load_run import load as load
    from weft.runs.python_api import create_task as create_task
    from weft.runs.python_api import run_experiment as run_experiment
    from weft.runs.python_api import train_model as train_model
    from weft.runs.train import Run as Run
    from weft.runs.train import train as train

_WHERE = {
    "Recipe": "weft.config.recipe",
    "Run": "weft.runs.train",
    "create_task": "weft.runs.python_api",
    "evaluate": "weft.runs.load_run",
    "like": "weft.config.recipe",
    "load": "weft.runs.load_run",
    "register_experiment": "weft.config.recipe",
    "register_task": "weft.config.recipe",
    "run_experiment": "weft.runs.python_api",
    "train": "weft.runs.train",
    "train_model": "weft.runs.python_api",
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


_NEVER_MOVED = ("weft.former_names", "weft.cli", "weft.cli.main")
"""What every command imports: a word of help need not read the table."""


class _FormerNames:
    """Finds modules by the names that they had, so that recipes written for those still run."""

    def find_spec(self, name: str, path: Any = None, target: object = None) -> Any:
        if not name.startswith("weft.") or name in _NEVER_MOVED:
            return None
        from weft.former_names import spec_of

        return spec_of(name, path)


sys.meta_path.insert(0, _FormerNames())


def __getattr__(name: str) -> Any:
    if name not in _WHERE:
        from weft.config.foreign_names import refuse_foreign_attribute

        refuse_foreign_attribute(f"weft.{name}")
        known = ", ".join(__all__)
        raise AttributeError(f"module 'weft' has no attribute '{name}'; it has: {known}")
    return getattr(importlib.import_module(_WHERE[name]), name)


def __dir__() -> list[str]:
    return __all__
