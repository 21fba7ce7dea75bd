"""Stochastic gradient descent."""

from typing import Any

import torch
from torch import nn
from typing_extensions import override

from weft.config import registries
from weft.config.validators import require
from weft.errors import UserError
from weft.training.optimizers.optimizer import Optimizer
from weft.training.optimizers.without_compiler import without_compiler

__all__ = ["SGD"]


@registries.optimizers.register("sgd")
class SGD(Optimizer):
    """Gradient descent with momentum (Polyak 1964) or Nesterov's, in torch's fused form.

    With gradient g, momentum m and rate r: ``b = m b + g``, then ``w -= r b``; with ``nesterov``
    ``w -= r (g + m b)`` (Sutskever et al. 2013). The first b is g.

    Example:
        >>> optimizer = SGD.Config(momentum=0.9, nesterov=True).build(module=nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('SGD', 0.1)
    """

    class Config(Optimizer.Config):
        """Settings of SGD."""

        lr: float = 0.1
        """Peak learning rate; the schedule multiplies it."""
        momentum: float = 0.0
        """Share of the last step's direction that is kept; 0.9 is usual."""
        nesterov: bool = False
        """Whether the gradient is taken as if the momentum's step had been made."""
        weight_decay: float = 0.0
        """Share of a matrix that is added to its gradient (L2)."""

        @override
        def __post_init__(self) -> None:
            """Refuses numbers with which SGD takes no sensible step."""
            super().__post_init__()
            require(self, "optimizer", shares=["momentum"], not_negative=["weight_decay"])
            if self.nesterov and not self.momentum:
                raise UserError(
                    "optimizer.nesterov needs a momentum, but optimizer.momentum is 0; "
                    "0.9 is usual."
                )

        @override
        def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
            """Torch's SGD, whose momentum is 0 before the first gradient instead of missing.

            That is the same formula, and the fused form fails where only some momenta are missing.
            """
            optimizer = without_compiler(torch.optim.SGD)(
                groups,
                lr=self.lr,
                momentum=self.momentum,
                nesterov=self.nesterov,
                weight_decay=self.weight_decay,
                fused=True,
            )
            if self.momentum:
                optimizer.register_step_pre_hook(_begin_momentum)
            return optimizer


def _begin_momentum(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and "momentum_buffer" not in optimizer.state[parameter]:
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)
