"""A module that the recipe itself has wrapped in torch's DistributedDataParallel."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from textmill.errors import UserError
from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Loss, Task
from textmill.training.data_parallel.gradient_sums import Replicated


def is_wrapped(module: nn.Module) -> bool:
    """Whether a module is a DistributedDataParallel.

    Raises:
        UserError: A part of it is one, whose gradients alone would be averages.
    """
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

    Args:
        task: Its ``module`` is the wrapper.
        ranks: The ranks, all of which the wrapper averages over.
        optimizer: Made over the parameters of the module.
        data_parallelism: What the trainer's settings ask for.

    Raises:
        UserError: The wrapper averages over others, or not all that the optimizer has, or each rank
            is to have a share of the weights.
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
