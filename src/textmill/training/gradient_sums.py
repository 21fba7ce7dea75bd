"""Ranks that each have the whole module: the sum of their gradients over all of them.

By textmill, on its way while the backward pass still computes (:class:`GradientSums`), or by
torch's DistributedDataParallel, where the recipe has wrapped its module (:class:`WrappedModule`).
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import torch
from torch import Tensor, nn

from textmill.errors import UserError
from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Loss, Task

GROUP = 4 << 20
"""Bytes of gradients that are sent at once: one by one, small tensors would each wait for an
answer, and of few large groups the last would be all that is waited for."""


@dataclass(frozen=True, kw_only=True)
class TensorRows:
    """The rows of a tensor that one rank holds."""

    first: int
    """The first of them, from 0."""
    count: int
    """How many; may be 0."""
    shape: tuple[int, ...]
    """Of the whole tensor."""


RowsOf = Callable[[str], TensorRows | None]
"""What a rank holds of a tensor, by its name in a part; None: all of it, as every rank does."""


@dataclass
class _Group:
    """Parameters of one type and device whose gradients travel together."""

    parameters: list[nn.Parameter]
    missing: set[Tensor] = field(default_factory=set)
    """Those whose gradient is not complete yet."""
    sums: Tensor | None = None
    arrived: Callable[[], None] | None = None


class Replicated:
    """Base of ways to share a step in which each rank has the whole module."""

    together = False
    """Whether no rank can compute a batch without the others."""
    rows: Mapping[str, RowsOf] = MappingProxyType({})
    """Where the tensors of a part stand in the whole, by part; empty: each rank has all of them."""

    def norm(self, gradients: Sequence[Tensor]) -> Tensor:
        """The norm of all gradients together, of the shape ``[]``."""
        return nn.utils.get_total_norm(gradients)

    @contextmanager
    def whole(self, *, write: bool = False) -> Iterator[None]:
        """Does nothing: each rank has the whole module."""
        del write
        yield

    def finish(self) -> None:
        """Does nothing: each rank has the whole module."""


class GradientSums(Replicated):
    """Replaces the gradients of parameters by their sum over all ranks, once a step.

    They are sent in groups, those of the parameters that come last first: a backward pass completes
    them about in that order, so the first groups travel while it goes on. Which are sent, and in
    which order, never depends on the rows: a rank sends zeros for what its rows have not used, and
    where it has no row at all. So sums are the same bits on all ranks and in each start of a run.
    """

    def __init__(self, ranks: Ranks, parameters: Sequence[nn.Parameter]) -> None:
        self.ranks, self.parameters = ranks, parameters
        self._groups = list(_grouped(parameters[::-1])) if ranks.size > 1 else []
        self._group: dict[Tensor, _Group] = {p: g for g in self._groups for p in g.parameters}
        self._used: set[Tensor] = set()
        self._next = 0

    def called(self, compute: Callable[[], Loss], *, is_last: bool) -> Loss:
        del is_last
        return compute()

    @contextmanager
    def last_backward(self) -> Iterator[None]:
        """Sends each group as soon as the backward pass in the block has completed it."""
        if not self._groups:
            yield
            return
        for group in self._groups:
            group.missing = set(group.parameters)
        hooks = [p.register_post_accumulate_grad_hook(self._completed) for p in self.parameters]
        try:
            yield
        finally:
            for hook in hooks:
                hook.remove()

    def send(self) -> list[bool]:
        """Sends what has not been sent; returns which parameters this rank's rows have used."""
        while self._next < len(self._groups):
            self._send_next()
        return [p in self._used for p in self.parameters]

    def receive(self, used: Sequence[bool]) -> None:
        """Waits for the sums, and gives them to the parameters that any rank's rows have used."""
        by_any = {p for p, is_used in zip(self.parameters, used, strict=True) if is_used}
        for group in self._groups:
            assert group.arrived is not None
            assert group.sums is not None
            group.arrived()
            parts = group.sums.split([p.numel() for p in group.parameters])
            for parameter, part in zip(group.parameters, parts, strict=True):
                parameter.grad = part.view_as(parameter) if parameter in by_any else None
            group.sums = group.arrived = None
        self._next = 0
        self._used.clear()

    def _completed(self, parameter: Tensor) -> None:
        group = self._group[parameter]
        if group.sums is not None:
            raise UserError(
                "A parameter's gradient was changed after it had been sent to the other ranks: the "
                "backward pass reached it twice. Reentrant activation checkpointing does so: use "
                "torch.utils.checkpoint with use_reentrant=False."
            )
        group.missing.discard(parameter)
        while self._next < len(self._groups) and not self._groups[self._next].missing:
            self._send_next()

    def _send_next(self) -> None:
        group = self._groups[self._next]
        self._used.update(p for p in group.parameters if p.grad is not None)
        grads = [torch.zeros_like(p) if p.grad is None else p.grad for p in group.parameters]
        group.sums = torch.cat([grad.reshape(-1) for grad in grads])
        group.arrived = self.ranks.begin_sum_(group.sums)
        for parameter in group.parameters:
            parameter.grad = None  # it is in the group now
        self._next += 1


def _grouped(parameters: Sequence[nn.Parameter]) -> Iterator[_Group]:
    """Parameters of one type and device, about ``GROUP`` bytes at a time."""
    open_groups: dict[tuple[torch.dtype, torch.device], _Group] = {}
    for parameter in parameters:
        kind = parameter.dtype, parameter.device
        group = open_groups.setdefault(kind, _Group([]))
        group.parameters.append(parameter)
        if sum(p.nbytes for p in group.parameters) >= GROUP:
            yield open_groups.pop(kind)
    yield from open_groups.values()


def is_wrapped(module: nn.Module) -> bool:
    """Whether a module is a DistributedDataParallel."""
    kind = nn.parallel.DistributedDataParallel
    wrapped = [name for name, part in module.named_modules() if isinstance(part, kind)]
    if wrapped not in ([], [""]):
        raise UserError(
            f"The module's part '{wrapped[-1]}' is a DistributedDataParallel, and the module is "
            "not. Wrap all of it, or nothing: textmill sums the gradients of what is not wrapped."
        )
    return bool(wrapped)


class WrappedModule(Replicated):
    """A wrapped module, which sums the gradients itself: its averages are made sums again.

    The task has the module inside, by whose names it is saved, and the wrapper in training steps.
    """

    together = True

    def __init__(
        self, task: Task, ranks: Ranks, optimizer: torch.optim.Optimizer, data_parallelism: str
    ) -> None:
        if data_parallelism == "fsdp":
            raise UserError(
                "trainer.data_parallelism=fsdp gives each rank a share of the weights, but the "
                "recipe's module is a DistributedDataParallel, which has all of them. Return it as "
                "it is, or leave data_parallelism out."
            )
        wrapper: Any = task.module
        self.task, self.ranks, self.wrapper = task, ranks, wrapper
        self.parameters = [p for group in optimizer.param_groups for p in group["params"]]
        own = set(wrapper.parameters())
        if wrapper.process_group.size() != ranks.size or not own.issuperset(self.parameters):
            raise UserError(
                "The recipe's DistributedDataParallel is not of all ranks, or the optimizer has a "
                "parameter that is not in it. Wrap the whole module, without a process_group; or "
                "return it as it is: textmill sums gradients itself."
            )
        task.module = wrapper.module

    def called(self, compute: Callable[[], Loss], *, is_last: bool) -> Loss:
        """The loss that ``compute`` gives; gradients travel in the backward pass of the last."""
        self.wrapper.require_backward_grad_sync = is_last
        self.task.module = self.wrapper
        try:
            return compute()
        finally:
            self.task.module = self.wrapper.module

    @contextmanager
    def last_backward(self) -> Iterator[None]:
        """Does nothing: the wrapper does it."""
        yield

    def send(self) -> list[bool]:
        """Makes sums of the averages; returns which parameters have any."""
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        torch._foreach_mul_(gradients, float(self.ranks.size))
        return [p.grad is not None for p in self.parameters]

    def receive(self, used: Sequence[bool]) -> None:
        """Nothing is left to wait for."""
        del used
