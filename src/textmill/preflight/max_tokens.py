"""``max_tokens=auto``: the largest batch that fits on CUDA, elsewhere a fixed number."""

import copy
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from textmill.config.planning.session import Session
from textmill.data.batching import TakesMaxTokens, largest_batch
from textmill.errors import UserError
from textmill.models.layers.precision import autocast
from textmill.preflight.disk_need import optimizer_bytes, weight_bytes
from textmill.preflight.load_data import all_data
from textmill.runtime.memory import cuda_room
from textmill.runtime.seeds import HostRandom, seed_all
from textmill.tasks.batches.row_batches import RowBatches, RowSource
from textmill.tasks.task import BatchRows, Task, loss_of
from textmill.training.blocks import checkpointed
from textmill.training.fsdp import is_sharded
from textmill.training.gradient_sums import is_wrapped
from textmill.training.precision import settled

CELLS = 2048
"""What ``auto`` stands for on other devices than CUDA: what the translation recipes have."""
FIRST = 1024
"""Cells of the first batch that is tried."""
LEAST = 64
"""Fewest cells that are tried: a sentence or two."""
SPARE = 0.1
"""Share of the free memory that is left: other batches fall otherwise into place."""
LEAST_BATCHES = 100
"""Batches an epoch has at least: with fewer a small data set would have few updates."""


def auto_data(session: Session) -> dict[str, Any]:
    """The data whose ``max_tokens`` is ``auto``, by name; it is built if it has not been."""
    found = {name: own.get(inner) for name, (own, inner) in all_data(session).items()}
    return {name: data for name, data in found.items() if is_auto(data)}


def is_auto(data: object) -> bool:
    """Whether data waits for a number in place of ``max_tokens=auto``."""
    return isinstance(data, RowSource) and data.batching.is_auto


def take_max_tokens(data: Mapping[str, Any], number: int) -> None:
    """Gives all data the number in place of ``auto``."""
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
    ``train_data`` where it has a number. Of several tasks it is the least that is found. What was
    ``recorded`` when the run began is taken as it is; else data, task and optimizer are built. The
    settings are those of the trainer, as planned.

    Returns:
        The number; None where no data is ``auto``.
    """
    data = auto_data(session)
    if not data:
        return None
    if recorded is None:
        auto = [own for own in session.each_task.values() if auto_data(own)]
        optimizer = session.get("optimizer") if session.has("optimizer") else None
        recorded = min(_least(own, settings, optimizer, seed=seed) for own in auto)
    take_max_tokens(data, recorded)
    return recorded


def _least(session: Session, settings: Mapping[str, Any], optimizer: Any, *, seed: int) -> int:
    train = session.get("train_data") if session.has("train_data") else None
    number = train.batching.max_tokens if isinstance(train, RowSource) else None
    if is_auto(train):
        return _found(session, settings, optimizer, seed=seed)
    if isinstance(number, int):
        return number
    raise UserError(
        f"{' and '.join(auto_data(session))}: max_tokens=auto is what is found for train_data, "
        "whose max_tokens is not auto. Set that to auto too, or give a number."
    )


def _found(session: Session, settings: Mapping[str, Any], optimizer: Any, *, seed: int) -> int:
    task: Task = session.get("task")
    if is_sharded(task.module) or is_wrapped(task.module):
        raise UserError(
            "train_data.max_tokens=auto is found by one rank, which cannot compute alone with a "
            "module that the recipe has wrapped for many. Give a number."
        )
    device = session.get("env").device
    task.module.to(device)
    batches = task.batches_of("train_data", session.get("train_data"), train=True, seed=seed)
    if not isinstance(batches, RowBatches):
        raise UserError(
            "train_data.max_tokens=auto is found on rows, but this task makes batches of its own "
            f"of them ({type(batches).__name__}). Give a number."
        )
    epoch = batches.batches
    cells = sum(int(column.sum()) for column in epoch.lengths.values())
    most = max(FIRST, cells // LEAST_BATCHES)
    if task.device.type != "cuda":
        return min(CELLS, most)
    averaged = settings.get("ema") or settings.get("swa_start")
    average = weight_bytes(task.module, trained=True) if averaged else 0
    besides = optimizer_bytes(optimizer) + average
    besides += int(SPARE * cuda_room(str(device)))
    found = largest_that_fits(
        task,
        batches,
        numbers=autocast(settled(settings.get("precision", "auto"), device), device),
        checkpointing=settings.get("activation_checkpointing", False),
        besides=besides,
        most=most,
    )
    if found is None:
        cells_of = np.sum([*epoch.lengths.values()], axis=0)
        longest = int(np.argmax(cells_of))
        raise UserError(
            f"train_data.max_tokens=auto: not even batches of {LEAST} cells fit into the memory "
            f"there is on {device}; the longest row alone, {longest} from 0, has "
            f"{int(cells_of[longest]):,}. Take a smaller model, or shorter rows."
        )
    return found


def largest_that_fits(
    task: Task,
    batches: RowBatches,
    *,
    numbers: AbstractContextManager[Any],
    checkpointing: bool,
    besides: int,
    most: int,
) -> int | None:
    """Doubles a batch's cells until the device's memory runs out; leaves no trace.

    The largest batch of each number goes through forward and backward pass, on a copy of the task
    with gradients, beside ``besides`` bytes for what a run also holds.

    Returns:
        The cells, ``most`` at most; None if not even LEAST fit.
    """

    def fits(number: int) -> bool:
        fitting = True
        try:
            epoch = batches.batches.with_max_tokens(number)
            with apart(task, checkpointing=checkpointing) as tried:
                # The copy of the weights is there now and not in training.
                size = max(0, besides - weight_bytes(task.module))
                held = torch.empty(size, dtype=torch.uint8, device=task.device)
                for parameter in tried.module.parameters():
                    learns = parameter.requires_grad
                    parameter.grad = torch.zeros_like(parameter) if learns else None
                seed_all(0, 0)
                tried.module.train()
                with numbers:
                    rows = largest_batch(list(epoch.lengths.values()), epoch.plan)
                    batch = epoch.gathered(epoch.plan[rows])
                    loss = loss_of(tried, batch, BatchRows(batches, batch))
                loss.total.backward()  # type: ignore[no-untyped-call,unused-ignore]
                del held
        except torch.OutOfMemoryError:
            fitting = False
        if task.device.type == "cuda":
            torch.cuda.empty_cache()
        return fitting

    number = FIRST
    while not fits(number):
        number //= 2
        if number < LEAST:
            return None
    while FIRST <= number < most and fits(min(2 * number, most)):
        number = min(2 * number, most)
    return number


@contextmanager
def apart(task: Task, *, checkpointing: bool = False) -> Iterator[Task]:
    """A copy of a task with modules and containers of its own; what else it has is shared.

    With ``checkpointing`` the copy's blocks are computed again in its backward passes.
    The random generators are afterwards as they were, and so are the task and its module.
    """
    own = (nn.Module, Tensor, list, dict, set)
    shared = {id(value): value for value in vars(task).values() if not isinstance(value, own)}
    host, cuda = HostRandom().state_dict(), [task.device] if task.device.type == "cuda" else []
    with torch.random.fork_rng(devices=cuda):
        try:
            own_task = copy.deepcopy(task, shared)
            with checkpointed(own_task.module, use=checkpointing):
                yield own_task
        finally:
            HostRandom().load_state_dict(host)
