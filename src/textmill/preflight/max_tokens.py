"""``max_tokens=auto``: the batch that fits into memory, and beyond which a step gains nothing."""

import time
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from textmill.config.planning.session import Session
from textmill.data.batches import EpochBatches
from textmill.data.batching import TakesMaxTokens
from textmill.errors import UserError
from textmill.preflight.load_data import DATA
from textmill.preflight.step_memory import (
    apart,
    middle_rows,
    optimizer_bytes,
    step_bytes,
    step_without_update,
    weight_bytes,
)
from textmill.runtime import memory
from textmill.runtime.memory import keep_memory
from textmill.tasks.batches.row_batches import RowBatches, RowSource
from textmill.tasks.task import Task
from textmill.training.data_parallel.fsdp import is_sharded
from textmill.training.data_parallel.wrapped import is_wrapped
from textmill.training.precision import autocast, settled

FIRST = 1024
"""Cells of the first batch that is tried."""
GAIN = 1.05
"""A batch of twice the cells must have this much more of the tokens a second."""
USED = 0.9
"""Share of the memory there is that batches may fill: other batches fall otherwise into place."""
LEAST_BATCHES = 100
"""Batches an epoch has at least: with fewer a small data set would have few updates."""
TIMED = 2
"""Passes of a batch that are timed, the faster of which counts, after one that is not."""


def auto_data(session: Session) -> dict[str, Any]:
    """The data whose ``max_tokens`` is ``auto``, by name; it is built if it has not been."""
    all_data = {name: session.get(name) for name in DATA if session.has(name)}
    return {name: data for name, data in all_data.items() if is_auto(data)}


def is_auto(data: object) -> bool:
    """Whether data waits for a number in place of ``max_tokens=auto``."""
    return isinstance(data, RowSource) and data.batching.is_auto


def take_max_tokens(data: Mapping[str, Any], number: int) -> None:
    """Gives all data the number in place of ``auto``.

    Raises:
        UserError: Some data is code of the recipe's own that cannot take it.
    """
    for name, each in data.items():
        if not isinstance(each, TakesMaxTokens):
            raise UserError(
                f"{name} is a {type(each).__name__} with max_tokens=auto, but without a method "
                "take_max_tokens(number). Add it, or give a number."
            )
        each.take_max_tokens(number)


def settle_max_tokens(
    session: Session, settings: Mapping[str, Any], *, seed: int, recorded: int | None = None
) -> int | None:
    """Finds the number that ``max_tokens=auto`` of a recipe's data stands for, and sets it.

    It is found for ``train_data``; ``valid_data`` and ``test_data`` take the same, and that of
    ``train_data`` where it has a number. What was ``recorded`` when the run began is taken as it
    is; else data, task and optimizer are built. The settings are those of the trainer, as planned.

    Returns:
        The number; None where no data is ``auto``.

    Raises:
        UserError: There is nothing to find it for, or not even a small batch fits.
    """
    data = auto_data(session)
    if not data:
        return None
    if recorded is None:
        train = session.get("train_data")
        number = train.batching.max_tokens if isinstance(train, RowSource) else None
        if "train_data" in data:
            recorded = _found(session, settings, seed=seed)
        elif isinstance(number, int):
            recorded = number
        else:
            raise UserError(
                f"{' and '.join(data)}: max_tokens=auto is what is found for train_data, whose "
                "max_tokens is not auto. Set that to auto too, or give a number."
            )
    take_max_tokens(data, recorded)
    return recorded


def _found(session: Session, settings: Mapping[str, Any], *, seed: int) -> int:
    task: Task = session.get("task")
    if is_sharded(task.module) or is_wrapped(task.module):
        raise UserError(
            "train_data.max_tokens=auto is found by one rank, which cannot compute alone with a "
            "module that the recipe has wrapped for many. Give a number."
        )
    device = session.get("env").device
    task.module.to(device)
    batches = task.batches_of("train_data", session.get("train_data"), train=True, seed=seed)
    epoch = batches.batches if isinstance(batches, RowBatches) else None
    if not isinstance(epoch, EpochBatches):
        raise UserError(
            "train_data.max_tokens=auto is found on rows, but this task makes batches of its own "
            f"of them ({type(batches).__name__}). Give a number."
        )
    if (settings.get("fast") or {}).get("keep_memory", True):
        keep_memory()  # as in training: larger batches else take longer than they will
    average = weight_bytes(task.module, trained=True) if settings.get("ema") else 0
    trials = Trials(
        task,
        epoch,
        numbers=lambda: autocast(settled(settings.get("precision", "auto"), device), device),
        accumulate=settings.get("accumulate", 1),
        checkpointing=settings.get("activation_checkpointing", False),
        besides=optimizer_bytes(session.get("optimizer")) + average,
    )
    cells = sum(int(column.sum()) for column in epoch.lengths.values())
    found = largest_that_pays(trials, most=max(FIRST, cells // LEAST_BATCHES))
    if found is None:
        cells_of = np.sum([*epoch.lengths.values()], axis=0)
        longest = int(np.argmax(cells_of))
        raise UserError(
            f"train_data.max_tokens=auto: not even batches of {LEAST} cells fit into the memory "
            f"there is on {device}; the longest row alone, {longest} from 0, has "
            f"{int(cells_of[longest]):,}. Take a smaller model, or shorter rows."
        )
    return found


LEAST = 64
"""Fewest cells that are tried: a sentence or two."""


def largest_that_pays(trials: "Trials", *, most: int) -> int | None:
    """Doubles a batch's cells while that pays, and halves the interval where memory ends it.

    Returns:
        The cells, ``most`` at most: of the first batch whose double gains less than 5 %, else the
        most that fit, to an eighth; None where not even LEAST fit.
    """
    number = FIRST
    while not trials.fits(number):
        number //= 2
        if number < LEAST:
            return None
    if number < FIRST:
        return _between(trials, number, 2 * number)
    rate = trials.rate(number)
    while number < most:
        double = min(2 * number, most)
        if not trials.fits(double):
            return _between(trials, number, double)
        faster = trials.rate(double)
        if not faster or faster < GAIN * rate:
            return number
        number, rate = double, faster
    return number


def _between(trials: "Trials", fits: int, not_fits: int) -> int:
    while not_fits - fits > fits // 8:
        middle = (fits + not_fits) // 2
        if trials.fits(middle):
            fits = middle
        else:
            not_fits = middle
    return fits


@dataclass
class Trials:
    """Batches tried on a copy of a task: whether they fit, and how fast they go."""

    task: Task
    epoch: EpochBatches[Any]
    """Of rows whose batching is ``auto``."""
    numbers: Callable[[], AbstractContextManager[Any]]
    """Types of the numbers in a forward pass."""
    accumulate: int = 1
    """Batches of an optimizer step."""
    checkpointing: bool = False
    """Whether blocks are computed again in the backward pass."""
    besides: int = 0
    """Bytes that a run has besides weights, gradients and a step: the optimizer's, an average."""
    room: Callable[[str], int | None] = memory.room
    """Bytes that can still be taken on a device."""
    limit: int = field(init=False)
    """Bytes that a step may hold."""

    def __post_init__(self) -> None:
        """Looks how much room there is.

        Raises:
            UserError: The device does not say.
        """
        device = str(self.task.device)
        room = self.room(device)
        if room is None:
            raise UserError(
                f"max_tokens=auto needs to know how much memory there is, and {device} does not "
                "say. Give a number."
            )
        self.limit = int(USED * room) - self.besides

    def fits(self, number: int) -> bool:
        """Whether the largest batch of so many cells fits, by what a part of it holds."""
        epoch = self.epoch.with_max_tokens(number)
        try:
            step = step_bytes(
                self.task,
                epoch,
                numbers=self.numbers(),
                accumulate=self.accumulate,
                checkpointing=self.checkpointing,
            )
        except torch.OutOfMemoryError:
            return False
        return step.whole <= self.limit

    def rate(self, number: int) -> float:
        """Tokens a second of forward and backward pass; 0 where the device's memory ran out."""
        epoch = self.epoch.with_max_tokens(number)
        rows = middle_rows(epoch)  # one long row alone says nothing of what a larger batch gains
        tokens = sum(int(column[rows].sum()) for column in epoch.lengths.values())
        try:
            with apart(self.task, checkpointing=self.checkpointing) as task:
                seconds = [self._timed(task, epoch.gathered(rows)) for _ in range(TIMED + 1)]
        except torch.OutOfMemoryError:
            return 0.0
        return tokens / min(seconds[1:])

    def _timed(self, task: Task, batch: Any) -> float:
        start = time.perf_counter()
        step_without_update(task, batch, numbers=self.numbers())
        if task.device.type == "cuda":
            torch.cuda.synchronize(task.device)
        return time.perf_counter() - start
