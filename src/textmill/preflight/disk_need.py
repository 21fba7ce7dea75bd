"""The disk that a run takes, known before its first step, and refused in time."""

import logging
import tempfile
from collections import OrderedDict, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from textmill.checkpoint.tensors import tensors_size
from textmill.checkpoint.writing import split_parts
from textmill.errors import StorageError, worded
from textmill.runtime.disk import operations
from textmill.runtime.files import size_of
from textmill.runtime.memory import as_size
from textmill.training.loop import Trainer

LOG = logging.getLogger("textmill")

CHECKPOINT_REST = 64 << 10
"""Bytes of a checkpoint for its list of files, its pointers and the folders' own blocks."""


def check_disk(trainer: Trainer) -> None:
    """Says in one line what disk a run needs and has; warns if not all checkpoints have room."""
    folder, config = trainer.checkpoints.folder.parent, trainer.config
    size = _checkpoint_bytes(trainer)
    count, which = _at_a_time(config.keep, rollback=config.on_nonfinite == "rollback")
    free, there = operations.free(folder), size_of(trainer.checkpoints.folder)
    if free < size:
        raise StorageError(
            f"A checkpoint takes {as_size(size)}, but {folder} has {as_size(free)} free. Make "
            f"room, or give another disk with {worded('--run-dir', 'run_dir')}."
        )
    needed, most = as_size(count * size), as_size(free + there)
    LOG.info("Disk: %s for %d checkpoints of %s, of %s.", needed, count, as_size(size), most)
    if free + there < count * size:
        LOG.warning(
            "The disk has no room for %d checkpoints (%s): make room, or lower trainer.keep.",
            count,
            which,
        )


def room_for(size: int, keep: int | None, *, rollback: bool = False) -> str:
    """What the checkpoints of a run take here, where its trainer says how many it keeps.

    With ``rollback`` one more of ``size`` bytes is kept, to go back to.
    """
    if keep is None:
        return ""
    count, which = _at_a_time(keep, rollback=rollback)
    free, needed = operations.free(Path.cwd()), count * size
    if free < needed:
        raise StorageError(
            f"{count} checkpoints of {size / 1e6:,.1f} MB ({which}) need {needed / 1e6:,.1f} MB, "
            f"but {Path.cwd()} has {free / 1e6:,.1f} MB free. Make room, lower trainer.keep, or "
            "run on another disk."
        )
    return f", {count} at a time: {needed / 1e6:,.1f} MB, of {free / 1e6:,.1f} MB free"


def _at_a_time(keep: int, *, rollback: bool) -> tuple[int, str]:
    """How many checkpoints a run has at most, and which these are."""
    goal = "the one that a rollback goes to, " if rollback else ""
    which = f"trainer.keep={keep}, the best, {goal}and the one being written"
    return keep + 2 + rollback, which


def weight_bytes(module: nn.Module, *, trained: bool = False) -> int:
    """Bytes of a module's parameters, each once, and of its buffers; or of those that learn."""
    if trained:
        return _size(p for p in module.parameters() if p.requires_grad)
    return _size(module.parameters()) + _size(module.buffers())


def optimizer_bytes(optimizer: torch.optim.Optimizer) -> int:
    """Bytes of the state that an optimizer has, or will have after its first step.

    The optimizer steps on zeros of the shape of each parameter, one tensor of each shape: neither
    it nor a parameter changes.

    Returns:
        The bytes; of an optimizer of the recipe's own that cannot step so, two numbers a weight,
        which is what Adam keeps.
    """
    if optimizer.state:
        return _state_size(optimizer)
    total, known = 0, dict[Any, int]()
    try:
        for number, group in enumerate(optimizer.param_groups):
            for parameter in group["params"]:
                key = number, parameter.shape, parameter.dtype, parameter.device
                if key not in known:
                    known[key] = _state_of(optimizer, group, parameter)
                total += known[key]
    except Exception:  # of another's code: whatever it wants of a step, this was none
        return 2 * _size(p for group in optimizer.param_groups for p in group["params"])
    return total


def _state_of(optimizer: torch.optim.Optimizer, group: dict[str, Any], like: Tensor) -> int:
    zero = nn.Parameter(torch.zeros_like(like))
    zero.grad = torch.zeros_like(like)
    shadow = object.__new__(type(optimizer))
    vars(shadow).update(vars(optimizer))
    hooks = [name for name in vars(optimizer) if name.endswith("_hooks")]
    vars(shadow).update({name: OrderedDict() for name in hooks})
    shadow.state = defaultdict(dict)
    shadow.param_groups = [{**group, "params": [zero]}]
    shadow.step()
    return _state_size(shadow)


def _state_size(optimizer: torch.optim.Optimizer) -> int:
    states = (state for state in optimizer.state.values() if isinstance(state, dict))
    return _size(value for state in states for value in state.values() if isinstance(value, Tensor))


def _size(tensors: Iterable[Tensor]) -> int:
    return sum(tensor.numel() * tensor.element_size() for tensor in tensors)


def _checkpoint_bytes(trainer: Trainer) -> int:
    """Bytes of a checkpoint after a step; now the optimizer has no state yet."""
    tensors, document = split_parts(0, {**trainer.parts, "optimizer": {}})
    with tempfile.TemporaryDirectory(prefix="textmill-need-") as folder:
        trainer.task.text.save(Path(folder))
        text = size_of(Path(folder))
    weights = sum(map(tensors_size, tensors.values()))
    return weights + len(document) + text + CHECKPOINT_REST + optimizer_bytes(trainer.optimizer)
