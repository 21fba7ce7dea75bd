"""What Adam and AdamW have in common: all but the place of the weight decay."""

from typing import Any, ClassVar

import torch
from torch import nn
from typing_extensions import override

from weft.config.limits import require
from weft.training.optimizers.optimizer import Optimizer
from weft.training.optimizers.without_compiler import without_compiler

__all__ = ["FusedAdam"]


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
