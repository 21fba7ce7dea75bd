"""Optimizers that are torch's own: Adam, AdamW (the default), SGD, Adafactor."""

from typing import Any, ClassVar

import torch
from torch import nn
from typing_extensions import override

from textmill.errors import UserError
from textmill.training import registries
from textmill.training.optimizers.optimizer import AlgorithmConfig, Optimizer


class FusedAdam(Optimizer):
    """Base of optimizers that are one of torch's kinds of Adam, in its fused form."""

    class Config(AlgorithmConfig, first=("weight_decay",)):
        """Settings of Adam, wherever the weights decay."""

        betas: tuple[float, float] = (0.9, 0.98)
        """Decay of the averages of gradient and squared gradient (0.98: Vaswani et al. 2017)."""
        eps: float = 1e-9
        """Added to the denominator (1e-9 as Vaswani et al. 2017)."""
        weight_decay: float = 0.0
        """Share of a matrix that decays a step."""

        limits: ClassVar = {
            "shares": ["betas"],
            "positive": ["eps"],
            "not_negative": ["weight_decay"],
        }

        @override
        def arguments(self) -> dict[str, Any]:
            return {**super().arguments(), "fused": True}


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

        algorithm = torch.optim.Adam


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

        algorithm = torch.optim.AdamW


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

    class Config(AlgorithmConfig):
        """Settings of SGD."""

        lr: float = 0.1
        """Peak learning rate; the schedule multiplies it."""
        momentum: float = 0.0
        """Share of the last step's direction that is kept; 0.9 is usual."""
        nesterov: bool = False
        """Whether the gradient is taken as if the momentum's step had been made."""
        weight_decay: float = 0.0
        """Share of a matrix that is added to its gradient (L2)."""

        algorithm = torch.optim.SGD
        limits: ClassVar = {"shares": ["momentum"], "not_negative": ["weight_decay"]}

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            if self.nesterov and not self.momentum:
                raise UserError(
                    "optimizer.nesterov needs a momentum, but optimizer.momentum is 0; "
                    "0.9 is usual."
                )

        @override
        def arguments(self) -> dict[str, Any]:
            return {**super().arguments(), "fused": True}

        @override
        def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
            """Torch's SGD, whose momentum is 0 before the first gradient instead of missing.

            That is the same formula, and the fused form fails where only some momenta are missing.
            """
            optimizer = super().make(groups, module)
            if self.momentum:
                optimizer.register_step_pre_hook(_begin_momentum)
            return optimizer


def _begin_momentum(optimizer: torch.optim.Optimizer, *_: Any) -> None:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None and "momentum_buffer" not in optimizer.state[parameter]:
                optimizer.state[parameter]["momentum_buffer"] = torch.zeros_like(parameter)


@registries.optimizers.register("adafactor")
class Adafactor(Optimizer):
    """Adafactor (Shazeer and Stern 2018), in torch's form: for models whose Adam does not fit.

    Of a matrix's squared gradients only the averages of rows and columns are kept. The step is
    relative: a parameter moves by ``max(eps, rms(parameter))`` times ``min(lr, 1 / sqrt(step))``.

    Example:
        >>> optimizer = Adafactor.Config().build(module=nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('Adafactor', 0.01)
    """

    class Config(AlgorithmConfig):
        """Settings of Adafactor."""

        lr: float = 1e-2
        """Largest relative step (the paper's 0.01); the schedule multiplies it."""
        beta2_decay: float = -0.8
        """Power of the step with which the squared gradients' average forgets less (the paper's
        -0.8): the newest counts ``step ** beta2_decay``."""
        eps: float = 1e-3
        """Smallest size that a parameter is taken to have, so that one at 0 can leave it."""
        clip: float = 1.0
        """Root mean square above which an update is scaled down to it (the paper's d)."""
        weight_decay: float = 0.0
        """Decoupled decay of matrices a step, as a share of the rate."""

        algorithm = torch.optim.Adafactor
        limits: ClassVar = {
            "sizes": ["clip"],
            "positive": ["eps"],
            "not_negative": ["weight_decay"],
        }

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            if not self.beta2_decay <= 0:
                raise UserError(
                    f"optimizer.beta2_decay must be at most 0, but is {self.beta2_decay}."
                )

        @override
        def arguments(self) -> dict[str, Any]:
            """Torch's, one parameter after the other: its form for all at once is slower.

            Measured on one CPU thread with 9.4 million parameters: 58 ms instead of 87.
            """
            own = super().arguments()
            own["d"] = own.pop("clip")
            return {**own, "eps": (None, self.eps), "foreach": False}
