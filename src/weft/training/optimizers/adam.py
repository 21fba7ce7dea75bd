"""Adam, with weight decay in the gradient as in the paper's time."""

import torch

from weft.config import registries
from weft.training.optimizers.fused_adam import FusedAdam

__all__ = ["Adam"]


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
