"""A trainer of a recipe's own: anything with ``fit() -> Progress``; what textmill does around it.

It takes ``task``, whose module it trains. When ``fit`` returns, the weights are saved as the run's
checkpoint, with the text processor, and its Progress is the result. A trainer that has
``state_dict`` and ``load_state_dict`` is saved beside the weights, and both are loaded before
``fit`` where a checkpoint is: one that the trainer saved in the middle of a run that was killed, or
the last of a run that is given more steps.
"""

import logging
from collections.abc import Collection
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import CHECKPOINTS
from textmill.checkpoint.parts import Stateful
from textmill.checkpoint.store import Checkpoints
from textmill.errors import RunError, UserError
from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Task
from textmill.training.progress import Progress

LOG = logging.getLogger("textmill")


def check_takes_task(planned: Collection[str]) -> None:
    """Refuses a recipe with no ``task`` among what is planned for its trainer."""
    if "task" not in planned:
        raise UserError(
            "the recipe's trainer does not take 'task', whose module's weights a run saves: "
            "nothing could be evaluated or predicted with. Give it a parameter 'task', and train "
            "task.module."
        )


def check_trainer(trainer: object) -> None:
    """Refuses what has no ``fit``."""
    if not hasattr(trainer, "fit"):
        raise UserError(
            f"the ingredient 'trainer' is a {type(trainer).__name__}, which has no method "
            "fit() -> Progress."
        )


def fit_own(trainer: Any, task: Task, folder: Path, ranks: Ranks) -> dict[str, Any]:
    """Trains a task with a trainer of the recipe's own; returns ``steps`` and ``epochs``.

    It divides the work of many ranks itself, by ``env``; the weights of the first one are saved.
    """
    store = Checkpoints(folder / CHECKPOINTS, writes=ranks.env.is_main)
    parts: dict[str, Stateful] = {"model": task.module}
    if isinstance(trainer, Stateful):
        parts["trainer"] = trainer
        with ranks.main_first():
            step = store.restore(parts)
        if step is not None:
            LOG.info(f"Resumed at step {step:,}.")
    elif store.last() is not None:
        LOG.warning(f"{type(trainer).__name__} has no state_dict: it trains anew.")
    progress = trainer.fit()
    if not isinstance(progress, Progress):
        found = "None" if progress is None else f"a {type(progress).__name__}"
        raise RunError(
            f"{type(trainer).__name__}.fit() returned {found}; wanted a "
            "textmill.training.Progress(steps=..., epochs=..., examples=...)."
        )
    with ranks.main_first():
        if store.writes:
            store.save(progress.steps, parts, write_text=task.text.save)
    return {"steps": progress.steps, "epochs": progress.epochs}
