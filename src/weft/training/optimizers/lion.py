"""Lion: a step of one size for every number, by the sign of an average."""

from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from weft.training import registries
from weft.training.optimizers.foreach_optimizer import ForeachOptimizer
from weft.training.optimizers.optimizer import Optimizer

__all__ = ["Lion"]


class LionSteps(ForeachOptimizer):
    """The algorithm, over all parameters of a group at once."""

    @override
    def move(
        self, parameters: list[Tensor], gradients: list[Tensor], group: dict[str, Any]
    ) -> None:
        rate, (near, far) = group["lr"], group["betas"]
        averages = self.kept("exp_avg", parameters)
        directions = list(torch._foreach_lerp(averages, gradients, 1 - near))
        torch._foreach_sign_(directions)
        if group["weight_decay"]:
            torch._foreach_mul_(parameters, 1 - rate * group["weight_decay"])
        torch._foreach_add_(parameters, directions, alpha=-rate)
        torch._foreach_lerp_(averages, gradients, 1 - far)


@registries.optimizers.register("lion")
class Lion(Optimizer):
    """Lion (Chen et al. 2023): every number moves by the rate, in the direction of an average.

    With gradient g, average m and rate r: ``w -= r (sign(b1 m + (1 - b1) g) + decay w)``, then
    ``m = b2 m + (1 - b2) g``. The paper's advice: a rate 3 to 10 times lower than AdamW's, a decay
    as much higher.

    Example:
        >>> optimizer = Lion.Config().build(module=torch.nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('LionSteps', 0.0001)
    """

    class Config(Optimizer.Config):
        """Settings of Lion."""

        lr: float = 1e-4
        """Peak learning rate, which is what each number moves by; the schedule multiplies it."""
        betas: tuple[float, float] = (0.9, 0.99)
        """Share of the average in the direction, and what is kept of it for the next step."""
        weight_decay: float = 0.0
        """Decoupled decay of matrices a step, as a share of the rate."""

        algorithm = LionSteps
        limits: ClassVar = {"shares": ["betas"], "not_negative": ["weight_decay"]}
