"""What is made of a run, looked at and set for it, before its first step."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path

from textmill.checkpoint.layout import has_checkpoints
from textmill.errors import UserError, try_all
from textmill.metrics.metric import Direction
from textmill.models import fast
from textmill.runtime.memory import keep_memory
from textmill.tasks.task import Task
from textmill.training.blocks import check_blocks, check_compiler, checkpointed, compiled
from textmill.training.checkpoints import check_modules
from textmill.training.initial_weights import Initial
from textmill.training.schedules import Schedule
from textmill.training.selection import Selection
from textmill.training.trainer_config import TrainerConfig
from textmill.training.updates import Updates


def total_steps(config: TrainerConfig, length: int | None) -> int | None:
    """Steps of the whole run where known: the fewer of those given and the epochs' own.

    The epochs' own are their number times those of the first, which has ``length`` batches.
    """
    until = config.until
    known = [] if until.steps is None else [until.steps]
    if until.epochs is not None and length is not None:
        known.append(until.epochs * -(-length // config.accumulate))
    return min(known, default=None)


def selection_for(config: TrainerConfig, task: Task, *, begins: int = 0) -> Selection:
    """The selection, checked before training against what the task measures.

    A step before ``begins`` is not selected.
    """
    settings = config.selection
    if settings.metric == "auto":
        settings = replace(settings, metric=task.selected)
    directions: dict[str, Direction | None] = {**task.directions()}
    if settings.metric not in directions:
        # Of what a task's own reduce makes no metric says which way is better; one that cannot do
        # without rows tells none.
        with suppress(ArithmeticError, LookupError, ValueError):
            directions = {**dict.fromkeys(task.reduce(task.metrics())), **directions}
    selection: Selection = settings.build(directions=directions)
    selection.begins = begins
    return selection


def checked_start(
    config: TrainerConfig,
    *,
    task: Task,
    updates: Updates,
    total: int | None,
    measured: bool,
    folder: Path,
) -> Initial:
    """Refuses what this run cannot have, all of it at once; returns the weights it begins with.

    Once something was saved in the run's folder, no weights are taken from elsewhere.
    """
    initial = Initial(config.initialize, config.initialize_from, task=task)
    checks = _checks(config, task, updates, total, measured=measured)
    try_all(*checks, *([] if has_checkpoints(folder) else [initial.check]))
    return initial


def _checks(
    config: TrainerConfig, task: Task, updates: Updates, total: int | None, *, measured: bool
) -> Iterator[Callable[[], object]]:
    schedule = updates.rates.schedule  # one of the recipe's own need not be a Schedule
    if isinstance(schedule, Schedule):
        yield partial(schedule.check, total, measured=measured)
    yield partial(updates.rates.check, total)
    yield partial(updates.pruner.check, total)
    if measured:
        yield partial(selection_for, config, task)
    yield partial(check_modules, task.module, config.save_modules)
    if config.activation_checkpointing:
        yield partial(check_blocks, task.module)
    if config.compile:
        yield partial(check_compiler, str(task.device))


@contextmanager
def kernels(config: TrainerConfig, paths: fast.Fast, task: Task) -> Iterator[None]:
    """Computes by the faster paths of a step, and each block as the settings have it.

    The process has its former paths again afterwards, and the module its own calls.
    """
    if paths.keep_memory:
        keep_memory()
    blocks, again = task.module, config.activation_checkpointing
    with (
        fast.using(paths),
        compiled(blocks, use=config.compile),
        checkpointed(blocks, use=again),
    ):
        yield


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
