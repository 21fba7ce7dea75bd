"""Adam, and AdamW, the default: they differ in the place of the weight decay alone."""

from typing import Any, ClassVar

import torch
from torch import nn
from typing_extensions import override

from weft.config import registries
from weft.config.validators import require
from weft.training.optimizers.optimizer import Optimizer
from weft.training.optimizers.without_compiler import without_compiler

__all__ = ["Adam", "AdamW", "FusedAdam"]


class FusedAdam(Optimizer):
    """Base of optimizers that are one of torch's kinds of Adam, in its fused form."""

    class Config(Optimizer.Config):
        """Settings of Adam, wherever the weights decay."""

        betas: tuple[float, float] = (0.9, 0.98)
        """Decay of the averages of gradient and squared gradient (0.98: Vaswani et al. 2017)."""
        eps: float = 1e-9
        """Added to the denominator (1e-9 as Vaswani et al. 2017)."""
        weight_decay: float = 0.0
        """Share of a matrix that decays a step."""

        kind: ClassVar[type[torch.optim.Adam]]
        """Torch's."""

        @override
        def __post_init__(self) -> None:
            """Refuses numbers with which Adam takes no sensible step."""
            super().__post_init__()
            require(
                self,
                "optimizer",
                shares=["betas"],
                positive=["eps"],
                not_negative=["weight_decay"],
            )

        @override
        def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
            """Torch's; the decay of a group that says its own is left as it is."""
            return without_compiler(self.kind)(
                groups,
                lr=self.lr,
                betas=self.betas,
                eps=self.eps,
                weight_decay=self.weight_decay,
                fused=True,
            )


@registries.optimizers.register("adam")
class Adam(FusedAdam):
    """Adam (Kingma and Ba 2015), in torch's fused form.

    A weight decay is added to the gradient, and so divided by its root mean square as well; AdamW
    decays apart from it and is the better default.

    Example:
        >>> optimizer = Adam.Config(lr=2e-3).build(module=torch.nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('Adam', 0.002)
    """

    class Config(FusedAdam.Config):
        """Settings of Adam."""

        weight_decay: float = 0.0
        """Share of a matrix that is added to its gradient (L2)."""

        kind = torch.optim.Adam


@registries.optimizers.register("adamw")
class AdamW(FusedAdam):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), in torch's fused form.

    Parameter groups come from the task (``Task.parameter_groups``): biases and norms are not
    decayed.

    Example:
        >>> optimizer = AdamW.Config(lr=2e-3).build(module=torch.nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('AdamW', 0.002)
    """

    class Config(FusedAdam.Config):
        """Settings of AdamW."""

        weight_decay: float = 0.0
        """Decoupled decay of matrices a step, as a share of the rate."""

        kind = torch.optim.AdamW
