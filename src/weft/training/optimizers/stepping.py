"""The frame of an optimizer that weft writes itself: what torch expects of ``step``."""

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any, overload

import torch
from torch import Tensor
from typing_extensions import override

__all__ = ["Stepping"]


class Stepping(torch.optim.Optimizer):
    """Base: a subclass moves the parameters that have a gradient."""

    @overload
    def step(self, closure: None = None) -> None: ...

    @overload
    def step(self, closure: Callable[[], float]) -> float: ...

    @torch.no_grad()
    @override
    def step(self, closure: Callable[[], float] | None = None) -> float | None:
        """Takes one step, after the closure where one computes the gradients anew."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        self.move_groups()
        return loss

    @abstractmethod
    def move_groups(self) -> None:
        """Moves the parameters of all groups, in place."""

    def moving(self) -> Iterator[tuple[list[Tensor], list[Tensor], dict[str, Any]]]:
        """For each group the parameters that have a gradient, their gradients, and the group."""
        for group in self.param_groups:
            parameters = [p for p in group["params"] if p.grad is not None]
            if parameters:
                yield parameters, [p.grad for p in parameters], group

    def kept(self, name: str, parameters: list[Tensor]) -> list[Tensor]:
        """What is kept of each parameter under a name: a tensor like it, zero at first."""
        for parameter in parameters:
            if name not in self.state[parameter]:
                self.state[parameter][name] = torch.zeros_like(parameter)
        return [self.state[parameter][name] for parameter in parameters]
