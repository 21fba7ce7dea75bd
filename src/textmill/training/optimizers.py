"""Optimizers: which parameters learn, and how fast, is the same for all of them."""

import inspect
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import nn
from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.tasks.several.multitask import Multitask
from textmill.tasks.task import Task
from textmill.training import registries
from textmill.training.layer_rates import (
    freeze,
    hidden_matrices,
    layer_width,
    rate_factors,
    split_by_rate,
)

LOG = logging.getLogger("textmill")
O = TypeVar("O", bound=torch.optim.Optimizer)  # noqa: E741  # an optimizer

HIDDEN = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
"""The methods that torch hides from its compiler."""
_MADE: dict[type[Any], type[Any]] = {}


class Optimizer(Component):
    """Base of the optimizers: a Config that builds a ``torch.optim.Optimizer``.

    Parameter groups come from the task (``Task.parameter_groups``: biases and norms are not
    decayed), without a task from the module. The schedule multiplies the rate of each group.
    A subclass's Config names an ``algorithm``, or overrides ``make``.
    """

    class Config(BaseConfig, first=("lr", "freeze")):
        lr: float = 1e-3
        """Peak learning rate, which the schedule scales. Lower it if the loss diverges, raise it if
        it falls slowly."""
        freeze: tuple[str, ...] = ()
        """Parameters that are not trained, by name, as ``["encoder.*"]``; ``*`` is any text."""
        layer_decay: float = 1.0
        """Factor on the rate from each layer to the one below, as 0.8 for fine-tuning; embeddings
        have the lowest rate."""
        rates: Mapping[str, float] = setting(factory=dict)
        """Factors on the rate by names of parameters, as ``{"decoder.*": 0.5}``."""
        lr_width: int | None = None
        """Width of the layers that ``lr`` was found for: a module twice as wide learns at half the
        rate; null if ``lr`` is for this module."""

        limits: ClassVar[Mapping[str, Sequence[str]]] = {}
        """Conditions on a subclass's own numbers, as keywords of ``require``."""
        always: ClassVar[Mapping[str, Any]] = {}
        """Arguments of the algorithm that are no settings."""
        algorithm: ClassVar[type[torch.optim.Optimizer]]
        """The class that is called with the settings; of torch's kind."""

        def __post_init__(self) -> None:
            require(self, "optimizer", positive=["lr", "layer_decay"], sizes=["lr_width"])
            if self.layer_decay > 1:
                raise UserError(
                    f"optimizer.layer_decay must be at most 1, but is {self.layer_decay}."
                )
            require(self, "optimizer", **self.limits)
            for glob, factor in self.rates.items():
                if not 0 < factor < math.inf:
                    raise UserError(
                        f"optimizer.rates['{glob}'] must be positive, but is {factor}; "
                        f'optimizer.freeze=["{glob}"] holds parameters still.'
                    )

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, module: nn.Module, task: Task | Multitask | None = None
        ) -> torch.optim.Optimizer:
            """Makes the optimizer over the task's parameter groups, else the module's own."""
            if line := freeze(module, self.freeze):
                LOG.info(line)
            groups = (
                [{"params": list(module.parameters())}] if task is None else task.parameter_groups()
            )
            factors = rate_factors(module, rates=self.rates, layer_decay=self.layer_decay)
            fitted = self._of_width(layer_width(module))
            return fitted.make(split_by_rate(groups, factors, lr=fitted.lr), module)

        def _of_width(self, width: int | None) -> Self:
            """The same with the rate for layers of so many features.

            Source: Yang et al. 2022, "Tensor Programs V", table 8 (Adam's rate of hidden layers).
            """
            if self.lr_width is None or width in (None, self.lr_width):
                return self
            lr = self.lr * self.lr_width / width
            LOG.info(
                f"The learning rate is {lr:.3g}: optimizer.lr={self.lr:.3g} is meant for layers of "
                f"{self.lr_width} features (optimizer.lr_width), and these have {width}."
            )
            return replace(self, lr=lr)

        def arguments(self) -> dict[str, Any]:
            """Arguments of the algorithm: all settings but those of the groups."""
            of_groups = ("freeze", "layer_decay", "lr_width", "rates")
            names = (field.name for field in fields(self))
            own = {name: getattr(self, name) for name in names if name not in of_groups}
            return {**own, **self.always}

        def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
            """Makes the optimizer over groups, each with its own ``lr``."""
            if not hasattr(self, "algorithm"):
                raise UserError(
                    f"{type(self).__qualname__} has no algorithm: name one, or add make."
                )
            return without_compiler(self.algorithm)(groups, **self.arguments())


def without_compiler(kind: type[O]) -> type[O]:
    """A subclass that does the same, of the same name, and leaves ``torch._dynamo`` alone."""
    if kind not in _MADE:
        plain: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in HIDDEN}
        plain["step"] = torch.no_grad()(inspect.unwrap(kind.step))
        plain |= {"__doc__": kind.__doc__, "__module__": kind.__module__}
        _MADE[kind] = type(kind.__name__, (kind,), plain)
    made: type[O] = _MADE[kind]
    return made


@registries.optimizers.register("adam")
class Adam(Optimizer):
    """Adam (Kingma and Ba 2015), in torch's fused form.

    A weight decay is added to the gradient, and so divided by its root mean square as well; AdamW
    decays apart from it and is the better default.
    """

    class Config(Optimizer.Config, first=("weight_decay",)):
        betas: tuple[float, float] = (0.9, 0.98)
        """Decay rates of the running averages of the gradient and of its square (0.98: Vaswani et
        al. 2017)."""
        eps: float = 1e-9
        """Added to the denominator of a step, for stability (1e-9: Vaswani et al. 2017)."""
        weight_decay: float = 0.0
        """Share of each weight matrix that is added to its gradient (L2). Raise it against
        overfitting."""

        algorithm: ClassVar[type[torch.optim.Optimizer]] = torch.optim.Adam
        always: ClassVar = {"fused": True}
        limits: ClassVar = {
            "shares": ["betas"],
            "positive": ["eps"],
            "not_negative": ["weight_decay"],
        }


@registries.optimizers.register("adamw")
class AdamW(Optimizer):
    """Adam with decoupled weight decay (Loshchilov and Hutter 2019), in torch's fused form."""

    class Config(Adam.Config):
        weight_decay: float = 0.0
        """Share of each weight matrix, times the rate, that a step takes away. Raise it against
        overfitting."""

        algorithm = torch.optim.AdamW


@registries.optimizers.register("sgd")
class SGD(Optimizer):
    """Gradient descent with momentum (Polyak 1964) or Nesterov's, in torch's fused form.

    With gradient g, momentum m and rate r: ``b = m b + g``, then ``w -= r b``; with ``nesterov``
    ``w -= r (g + m b)`` (Sutskever et al. 2013). The first b is g.
    """

    class Config(Optimizer.Config):
        lr: float = 0.1
        """Peak learning rate, which the schedule scales. Lower it if the loss diverges, raise it if
        it falls slowly."""
        momentum: float = 0.0
        """Share of the last step's direction that is kept; 0.9 is usual."""
        nesterov: bool = False
        """Whether to look ahead: the gradient counts as if the momentum's step were made."""
        weight_decay: float = 0.0
        """Share of each weight matrix that is added to its gradient (L2). Raise it against
        overfitting."""

        algorithm = torch.optim.SGD
        always: ClassVar = {"fused": True}
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
    """

    class Config(Optimizer.Config):
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
        """Share of each weight matrix, times the rate, that a step takes away. Raise it against
        overfitting."""

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


class MuonAndAdamW(torch.optim.Optimizer):
    """Two optimizers over the groups and the state of one; ``by`` says whose a group is."""

    def __init__(
        self, groups: list[dict[str, Any]], *, muon: dict[str, Any], adamw: dict[str, Any]
    ) -> None:
        own = {by: [group for group in groups if group["by"] == by] for by in ("muon", "adamw")}
        # Each fills the settings of its groups in; the groups stay the same objects throughout.
        self._parts: dict[str, torch.optim.Optimizer] = {}
        if own["muon"]:
            self._parts["muon"] = without_compiler(torch.optim.Muon)(own["muon"], **muon)
        if own["adamw"]:
            self._parts["adamw"] = without_compiler(torch.optim.AdamW)(own["adamw"], **adamw)
        super().__init__(groups, {})

    @torch.no_grad()
    @override
    def step(self, closure: Callable[[], float] | None = None) -> float | None:  # type: ignore[override]
        """Takes one step with each, after the closure if one computes the gradients anew."""
        loss = None
        if closure is not None:
            with torch.enable_grad():
                loss = closure()
        for by, part in self._parts.items():
            part.param_groups = [group for group in self.param_groups if group["by"] == by]
            part.state = self.state
            part.step()
        return loss


@registries.optimizers.register("muon")
class Muon(Optimizer):
    """Muon (Jordan et al. 2024) for the layers' matrices, AdamW for embeddings, output and vectors.

    The averaged gradient of a matrix is made orthogonal, so that all its directions move alike, by
    five Newton-Schulz steps in bfloat16 (fast where the processor multiplies in that format). The
    step is scaled by ``0.2 sqrt(max(rows, columns))`` as Liu et al. 2025, so that rate and decay of
    an AdamW that works are good for it. Matrices are those inside the module's layers
    (``nn.ModuleList``), where it has none all but embeddings. Each is taken as it is kept:
    attention keeps its queries, keys and values stacked in one matrix (``qkv``, ``kv``), which is
    made orthogonal as one, not each of them by itself.
    """

    class Config(Optimizer.Config):
        momentum: float = 0.95
        """Decay of the gradient's average of Muon's matrices."""
        nesterov: bool = True
        """Whether the gradient at hand counts once more."""
        betas: tuple[float, float] = (0.9, 0.98)
        """AdamW's, for all but the layers' matrices."""
        eps: float = 1e-9
        """AdamW's, for all but the layers' matrices."""
        weight_decay: float = 0.0
        """Share of each weight matrix, times the rate, that a step takes away. Raise it against
        overfitting."""

        limits: ClassVar = {
            "shares": ["momentum", "betas"],
            "positive": ["eps"],
            "not_negative": ["weight_decay"],
        }

        @override
        def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
            """One optimizer over both; refuses a module without a matrix for Muon."""
            hidden = hidden_matrices(module)
            split: list[dict[str, Any]] = []
            for group in groups:
                for by in ("muon", "adamw"):
                    own = [p for p in group["params"] if (p in hidden) == (by == "muon")]
                    split += [{**group, "params": own, "by": by}] if own else []
            if not any(group["by"] == "muon" for group in split):
                raise UserError(
                    f"optimizer.type=muon finds no matrix to train in the layers of "
                    f"{type(module).__name__}; optimizer.type=adamw trains all else."
                )
            both = self.arguments()
            adamw = {name: both.pop(name) for name in ("betas", "eps")}
            shared = {name: both[name] for name in ("lr", "weight_decay")}
            return without_compiler(MuonAndAdamW)(
                split,
                muon={**both, "adjust_lr_fn": "match_rms_adamw"},
                adamw={**shared, **adamw, "fused": True},
            )
