"""What is made of a run, looked at and set for it, before its first step."""

from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textmill.checkpoint.layout import has_checkpoints
from textmill.config.foreign_names import class_here
from textmill.errors import TextmillError, UserError, try_all
from textmill.metrics.metric import Direction
from textmill.models import fast
from textmill.runtime.memory import keep_memory
from textmill.tasks.batches.user_batches import known_length
from textmill.tasks.task import Batches, Task
from textmill.training.blocks import check_blocks, check_compiler, checkpointed, compiled
from textmill.training.checkpoints import check_modules
from textmill.training.initial_weights import Initial
from textmill.training.schedules import Schedule
from textmill.training.selection import Selection
from textmill.training.trainer_config import TrainerConfig


def total_steps(config: TrainerConfig, train: Batches) -> int | None:
    """Steps of the whole run where known: the fewer of those given and the epochs' own.

    The epochs' own are their number times the length of the first.
    """
    until = config.until
    known = [] if until.steps is None else [until.steps]
    if until.epochs is not None and (length := known_length(train)) is not None:
        known.append(until.epochs * -(-length // config.accumulate))
    return min(known, default=None)


def selection_for(config: TrainerConfig, task: Task) -> Selection:
    """The selection, checked before training against what the task measures."""
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
    return selection


def checked_start(
    config: TrainerConfig,
    *,
    task: Task,
    schedule: object,
    total: int | None,
    measured: bool,
    folder: Path,
) -> Initial:
    """Refuses what this run cannot have, all of it at once; returns the weights it begins with.

    A schedule of the recipe's own need not be a :class:`Schedule`. Once something was saved in the
    run's folder, no weights are taken from elsewhere.
    """
    initial = Initial(config.initialize, config.initialize_from, task=task)
    checks = _checks(config, task, schedule, total, measured=measured)
    try_all(*checks, *([] if has_checkpoints(folder) else [initial.check]))
    return initial


def _checks(
    config: TrainerConfig, task: Task, schedule: object, total: int | None, *, measured: bool
) -> Iterator[Callable[[], object]]:
    if isinstance(schedule, Schedule):
        yield partial(schedule.check, total, measured=measured)
    yield partial(_check_factor, schedule, total)
    if measured:
        yield partial(selection_for, config, task)
    yield partial(check_modules, task.module, config.save_modules)
    if config.activation_checkpointing:
        yield partial(check_blocks, task.module)
    if config.compile:
        yield partial(check_compiler, str(task.device))


def _check_factor(schedule: Any, total: int | None) -> None:
    """Refuses a schedule that gives no factor, and what is none."""
    step = 1
    if hasattr(schedule, "get_last_lr"):  # torch's, which has a state and moves the optimizer
        name = type(schedule).__name__
        raise UserError(f"lr_scheduler: {name} is of another kind. {class_here(type(schedule))}")
    try:
        if isinstance(schedule, Schedule):
            after_warmup = schedule.warmup(total) + 1
            step = after_warmup if total is None else min(after_warmup, total)
        factor = schedule(step, total, ())
    except TextmillError:
        return  # of its check, in its own words
    except TypeError as error:
        raise UserError(
            f"lr_scheduler is called as lr_scheduler(step, total, history), and that fails: {error}"
        ) from error
    if not isinstance(factor, int | float) or not 0 <= factor < float("inf"):
        name = type(schedule).__qualname__
        raise UserError(
            f"lr_scheduler: {name} gives {factor!r:.40} for step {step}; wanted a number of 0 "
            "or more, by which the learning rate is multiplied."
        )


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
