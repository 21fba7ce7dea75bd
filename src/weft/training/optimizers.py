"""Optimizers as components: a Config that builds a ``torch.optim.Optimizer``."""

import torch
from torch import nn
from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import UserError
from weft.tasks.task import Task

__all__ = ["AdamW"]


@registries.optimizers.register("adamw")
class AdamW(Component):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), in torch's fused form.

    Parameter groups come from the task (``Task.parameter_groups``): biases and norms are not
    decayed.

    Example:
        >>> optimizer = AdamW.Config(lr=2e-3).build(module=torch.nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('AdamW', 0.002)
    """

    class Config(BaseConfig):
        """Settings of AdamW."""

        lr: float = 1e-3
        """Peak learning rate; the schedule multiplies it."""
        betas: tuple[float, float] = (0.9, 0.98)
        """Decay of the averages of gradient and squared gradient (0.98: Vaswani et al. 2017)."""
        eps: float = 1e-9
        """Added to the denominator (1e-9 as Vaswani et al. 2017)."""
        weight_decay: float = 0.0
        """Decoupled decay of matrices a step, as a share of the rate."""

        def __post_init__(self) -> None:
            """Refuses numbers with which Adam takes no sensible step."""
            for name, fits, wanted in (
                ("lr", self.lr > 0, "positive"),
                ("betas", all(0 <= beta < 1 for beta in self.betas), "from 0 to below 1"),
                ("eps", self.eps > 0, "positive"),
                ("weight_decay", self.weight_decay >= 0, "at least 0"),
            ):
                if not fits:
                    raise UserError(
                        f"optimizer.{name} must be {wanted}, but is {getattr(self, name)}."
                    )

        @override
        def build(self, *, module: nn.Module, task: Task | None = None) -> torch.optim.Optimizer:  # type: ignore[override]
            """Makes the optimizer over the task's parameter groups, else the module's own."""
            groups = (
                [{"params": list(module.parameters())}] if task is None else task.parameter_groups()
            )
            return torch.optim.AdamW(
                groups,
                lr=self.lr,
                betas=self.betas,
                eps=self.eps,
                weight_decay=self.weight_decay,
                fused=True,
            )

    def __init__(self, config: Config) -> None:
        self.config = config
