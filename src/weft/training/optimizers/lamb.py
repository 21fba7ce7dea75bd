"""LAMB: Adam whose step of each parameter is a share of that parameter's norm."""

from typing import Any, ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from weft.training import registries
from weft.training.optimizers.foreach_optimizer import ForeachOptimizer
from weft.training.optimizers.optimizer import Optimizer

__all__ = ["LAMB"]


class LAMBSteps(ForeachOptimizer):
    """The algorithm, over all parameters of a group at once."""

    @override
    def move(
        self, parameters: list[Tensor], gradients: list[Tensor], group: dict[str, Any]
    ) -> None:
        updates = self._adam_directions(parameters, gradients, group)
        if group["weight_decay"]:
            torch._foreach_add_(updates, parameters, alpha=group["weight_decay"])
        sizes = torch.stack(list(torch._foreach_norm(parameters)))
        lengths = torch.stack(list(torch._foreach_norm(updates)))
        both = (sizes > 0) & (lengths > 0)
        factors = torch.where(both, sizes / lengths, 1.0) * -group["lr"]
        torch._foreach_mul_(updates, list(factors.unbind()))
        torch._foreach_add_(parameters, updates)

    def _adam_directions(
        self, parameters: list[Tensor], gradients: list[Tensor], group: dict[str, Any]
    ) -> list[Tensor]:
        """Average over root of squared average, both without the bias of their start at 0."""
        keep, keep_squares = group["betas"]
        averages, squares = (self.kept(n, parameters) for n in ("exp_avg", "exp_avg_sq"))
        steps = []
        for parameter in parameters:
            steps.append(self.state[parameter].get("step", 0) + 1)
            self.state[parameter]["step"] = steps[-1]
        torch._foreach_lerp_(averages, gradients, 1 - keep)
        torch._foreach_mul_(squares, keep_squares)
        torch._foreach_addcmul_(squares, gradients, gradients, 1 - keep_squares)
        roots = list(torch._foreach_div(squares, [1 - keep_squares**step for step in steps]))
        torch._foreach_sqrt_(roots)
        torch._foreach_add_(roots, group["eps"])
        directions = list(torch._foreach_div(averages, [1 - keep**step for step in steps]))
        torch._foreach_div_(directions, roots)
        return directions


@registries.optimizers.register("lamb")
class LAMB(Optimizer):
    """LAMB (You et al. 2020, algorithm 2), for batches of thousands of sentences.

    With Adam's direction u and ``u += decay w``, a parameter w moves by
    ``lr * norm(w) / norm(u) * u``; by ``lr * u`` where either norm is 0. The norm is not cut (the
    paper's phi is the identity), and each parameter is a layer of its own.

    Example:
        >>> optimizer = LAMB.Config(lr=2e-3).build(module=torch.nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('LAMBSteps', 0.002)
    """

    class Config(Optimizer.Config):
        """Settings of LAMB."""

        betas: tuple[float, float] = (0.9, 0.999)
        """Decay of the averages of gradient and squared gradient."""
        eps: float = 1e-6
        """Added to the denominator (the paper's 1e-6)."""
        weight_decay: float = 0.01
        """Share of a matrix that is added to its direction (the paper's 0.01)."""

        algorithm = LAMBSteps
        limits: ClassVar = {
            "shares": ["betas"],
            "positive": ["eps"],
            "not_negative": ["weight_decay"],
        }
