"""What is known of a run, looked at and set for it, before its first step."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

from weft.errors import WeftError
from weft.metrics.metric import Direction
from weft.models import fast
from weft.models.fast import Fast
from weft.runtime.allocator import keep_memory
from weft.tasks.task import Batches, Task
from weft.training.compiled import check_compiler
from weft.training.saved_modules import check_modules
from weft.training.schedules import Schedule
from weft.training.selection import Selection
from weft.training.settings import TrainerConfig

__all__ = ["batches_of", "checks_of", "directions_of", "fast_paths", "selection_for", "total_steps"]


def total_steps(config: TrainerConfig, train: Batches) -> int | None:
    """Steps of the whole run where known: the fewer of those given and the epochs' own.

    The epochs' own are their number times the length of the first.
    """
    until, length = config.until, getattr(train, "__len__", None)
    known = [] if until.steps is None else [until.steps]
    if until.epochs is not None and length is not None:
        known.append(until.epochs * -(-length() // config.accumulate))
    return min(known, default=None)


def selection_for(config: TrainerConfig, task: Task) -> Selection:
    """The selection, checked before training against what the task measures."""
    directions: dict[str, Direction | None] = {**directions_of(task)}
    if config.selection.metric not in directions:
        directions = {**_reduced(task), **directions}
    selection: Selection = config.selection.build(directions=directions)
    return selection


def batches_of(name: str, data: Iterable[Any], *, task: Task, train: bool, seed: int) -> Batches:
    """The batches of some data; what is to know of its rows, or wrong, is said to be its."""
    task.reading = name
    try:
        return task.batches(data, train=train, seed=seed)
    except WeftError as error:
        error.add_note(f"in {name}")
        raise
    finally:
        task.reading = ""


def checks_of(
    config: TrainerConfig, task: Task, schedule: object, train: Batches, *, measured: bool
) -> Iterator[Callable[[], object]]:
    """What is looked at before training; each raises what this run cannot have.

    Args:
        config: The trainer's settings.
        task: What is trained.
        schedule: The schedule; one of the recipe's own need not be a :class:`Schedule`.
        train: The batches of ``train_data``.
        measured: Whether there is ``valid_data``.
    """
    if isinstance(schedule, Schedule):
        yield partial(schedule.check, total_steps(config, train), measured=measured)
    if measured:
        yield partial(selection_for, config, task)
    yield partial(check_modules, task.module, config.save_modules)
    if config.compile:
        yield partial(check_compiler, str(task.device))


@contextmanager
def fast_paths(paths: Fast) -> Iterator[None]:
    """Takes the faster paths of a step; the process has its former ones again afterwards."""
    before = fast.now()
    fast.use(paths)
    if paths.keep_memory:
        keep_memory()
    try:
        yield
    finally:
        fast.use(before)


def directions_of(task: Task) -> dict[str, Direction]:
    """For each value of the task's evaluation, which way is better."""
    metrics = task.metrics().values()
    return {name: way for metric in metrics for name, way in metric.directions().items()}


def _reduced(task: Task) -> dict[str, None]:
    """The values that the task's own ``reduce`` makes, of which no metric says which way is better.

    A ``reduce`` that cannot do without rows tells none.
    """
    try:
        return dict.fromkeys(task.reduce(task.metrics()))
    except (ArithmeticError, LookupError, ValueError):
        return {}
