"""AdamW: the default."""

import torch

from weft.config import registries
from weft.training.optimizers.fused_adam import FusedAdam

__all__ = ["AdamW"]


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
