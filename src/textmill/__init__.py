"""textmill trains, evaluates and exports text models from one typed recipe, and answers with them.

The public names are imported when they are first used: ``import textmill`` imports no torch.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from textmill.config.recipe import Recipe as Recipe
    from textmill.config.recipe import like as like
    from textmill.config.recipe import register_experiment as register_experiment
    from textmill.inference.load_encoder import load_encoder as load_encoder
    from textmill.runs.calibrate import calibrate as calibrate
    from textmill.runs.ensemble import ensemble as ensemble
    from textmill.runs.fit import fit as fit
    from textmill.runs.load_run import evaluate as evaluate
    from textmill.runs.load_run import load as load
    from textmill.runs.python_api import create_task as create_task
    from textmill.runs.python_api import run_experiment as run_experiment
    from textmill.runs.python_api import train_model as train_model
    from textmill.runs.resume import Run as Run
    from textmill.runs.sharing.pull import pull as pull
    from textmill.runs.sharing.push import push as push
    from textmill.runs.train import train as train
    from textmill.tasks.registries import register_task as register_task


def __getattr__(name: str) -> Any:
    from textmill.config.public_names import public_name

    return public_name(__name__, name)


def __dir__() -> list[str]:
    from textmill.config.public_names import public_names

    return list(public_names(__name__))
