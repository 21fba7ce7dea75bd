"""What a training step holds at most: measured on a part of the largest batch before step 1."""

import copy
import weakref
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from typing_extensions import override

from textmill.data.batches import EpochBatches
from textmill.data.batching import largest_batch
from textmill.runtime.seeds import HostRandom, seed_all
from textmill.tasks.task import Task, loss_of
from textmill.training.blocks import checkpointed

FEW_ROWS = 8
"""A batch of so few rows is tried whole. Of more, half as many are tried at least: what one to
three rows hold is not on the line of the others on some processors."""
POINTS = 1000
"""Places of a pass at which bytes are compared; 12 layers have some 1,500 operations."""


@dataclass(frozen=True)
class StepBytes:
    """Bytes of tensors in a forward and backward pass, gradients included."""

    whole: int
    """The most that the largest batch holds at a time."""
    tried: int
    """The most that was held when a part of it was tried, with the copy of the module."""


def weight_bytes(module: nn.Module, *, trained: bool = False) -> int:
    """Bytes of a module's parameters, each once, and of its buffers; or of those that learn.

    Example:
        >>> module = nn.Linear(3, 2)
        >>> _ = module.bias.requires_grad_(False)
        >>> weight_bytes(module), weight_bytes(module, trained=True)
        (32, 24)
    """
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

    Example:
        >>> module = nn.Linear(3, 2)
        >>> optimizer_bytes(torch.optim.SGD(module.parameters(), momentum=0.9))
        32
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


def largest_rows(epoch: EpochBatches[Any]) -> NDArray[np.int64]:
    """The rows of the largest batch of the epoch at hand, the longest of each column first."""
    lengths = list(epoch.lengths.values())
    rows = epoch.plan[largest_batch(lengths, epoch.plan)]
    rows = rows[np.argsort(-np.sum([column[rows] for column in lengths], axis=0), kind="stable")]
    longest = [int(np.argmax(column[rows])) for column in lengths]
    front = list(dict.fromkeys(longest))
    return np.concatenate([rows[front], np.delete(rows, front)])


def middle_rows(epoch: EpochBatches[Any]) -> NDArray[np.int64]:
    """The rows of a batch as most are: of middle width, and not one row over the budget alone."""
    lengths, over = list(epoch.lengths.values()), set(epoch.over_budget.tolist())
    plan = [rows for rows in epoch.plan if len(rows) > 1 or int(rows[0]) not in over] or epoch.plan
    width = [sum(int(column[rows].max()) for column in lengths) for rows in plan]
    return plan[int(np.argsort(width, kind="stable")[len(width) // 2])]


def step_bytes(
    task: Task,
    epoch: EpochBatches[Any],
    *,
    numbers: AbstractContextManager[Any],
    accumulate: int = 1,
    checkpointing: bool = False,
) -> StepBytes:
    """Counts what forward and backward pass of the largest batch hold at most.

    A sixteenth and an eighth of its rows, the longest, 4 and 8 at least, go through a copy of the
    task, and the tensors that are there after each operation are counted; what is there in the
    whole batch is, at each point of the pass, on the line through the two. The random generators,
    the task and its module are afterwards as they were. ``numbers`` are the types of the numbers in
    a forward pass. With several batches of a step, one meets the gradients of those before; with
    ``checkpointing`` blocks are computed again in the backward pass.
    """
    rows = largest_rows(epoch)
    less = max(FEW_ROWS // 2, len(rows) // 16)
    sizes = [len(rows)] if len(rows) <= FEW_ROWS else [less, max(2 * less, len(rows) // 8)]
    live = LiveBytes()
    with apart(task, checkpointing=checkpointing) as tried:
        passes = [
            _pass(tried, epoch.gathered(rows[:n]), live, numbers=numbers, held=accumulate != 1)
            for n in sizes
        ]
    held = int(passes[-1].max()) + weight_bytes(task.module)
    if len(passes) == 1:
        return StepBytes(int(passes[0].max()), held)
    slope = (passes[1] - passes[0]) / (sizes[1] - sizes[0])
    return StepBytes(round((passes[1] + slope * (len(rows) - sizes[1])).max()), held)


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


def step_without_update(
    task: Task,
    batch: Any,
    *,
    numbers: AbstractContextManager[Any],
    look: Callable[[], None] = lambda: None,
) -> None:
    """Forward and backward pass, a look after each, of a batch; its gradients are thrown away."""
    seed_all(0, 0)
    task.module.train()
    with numbers:
        loss = loss_of(task, batch)
    look()
    loss.total.backward()  # type: ignore[no-untyped-call,unused-ignore]
    look()
    del loss
    task.module.zero_grad(set_to_none=True)


def _pass(
    task: Task,
    batch: Any,
    live: "LiveBytes",
    *,
    numbers: AbstractContextManager[Any],
    held: bool,
) -> NDArray[np.float64]:
    """The bytes that are there at points of a step without its update, as many for any batch."""
    passes: list[NDArray[np.float64]] = []

    def look() -> None:
        history = live.history  # at POINTS places: a larger batch may take more operations
        places = np.linspace(0, len(history) - 1, POINTS)
        passes.append(np.interp(places, np.arange(len(history)), history))
        history.clear()

    with live:
        for parameter in task.module.parameters() if held else ():
            parameter.grad = torch.zeros_like(parameter) if parameter.requires_grad else None
        live.history.clear()
        step_without_update(task, batch, numbers=numbers, look=look)
    return np.concatenate(passes)


class LiveBytes(TorchDispatchMode):
    """Counts, operation by operation, the tensors that are made while it is entered.

    Views share their storage, which counts once, until the last tensor of it is gone. What was
    there before is not counted, and neither is what the C++ code of one operation takes and gives
    back inside it. An operation takes some 10 microseconds more.

    Example:
        >>> with LiveBytes() as live:
        ...     a = torch.ones(1000)
        ...     b = a.view(10, 100)
        ...     c = (b + 1).sum()
        >>> live.peak, live.now
        (8004, 4004)
    """

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.now = 0
        """Bytes of the storages made so far that are still there."""
        self.history: list[int] = []
        """What ``now`` was after each operation."""
        self._known: weakref.WeakSet[torch.UntypedStorage] = weakref.WeakSet()

    @classmethod
    @override
    def _should_skip_dynamo(cls) -> bool:
        """Else torch wraps the method below, whose first call then imports its compiler: 2.5 s."""
        return False

    @override
    def __torch_dispatch__(
        self,
        func: Any,
        types: Any,
        args: Sequence[Any] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        given = {s.data_ptr() for s in _storages((*args, *(kwargs or {}).values()))}
        made = func(*args, **(kwargs or {}))
        for storage in _storages(made):
            if storage.data_ptr() not in given and storage not in self._known:
                size = storage.nbytes()
                self._known.add(storage)
                self.now += size
                weakref.finalize(storage, self._gone, size).atexit = False
        self.history.append(self.now)
        return made

    @property
    def peak(self) -> int:
        """The most that ``now`` has been."""
        return max(self.history, default=0)

    def _gone(self, size: int) -> None:
        self.now -= size


def _storages(values: Any) -> Iterator[torch.UntypedStorage]:
    """Of all tensors in what an operation takes or gives: it nests them in lists at most."""
    if isinstance(values, Tensor):
        yield values.untyped_storage()
    elif isinstance(values, list | tuple):
        for value in values:
            yield from _storages(value)
