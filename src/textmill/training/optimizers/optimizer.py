"""The base of the optimizers: which parameters learn, and how fast, is the same for all."""

import inspect
import logging
import math
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from typing import Any, ClassVar, Self, TypeVar

import torch
from torch import nn
from typing_extensions import override

from textmill.config.component import Component, setting
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.tasks.task import Task
from textmill.training.layer_rates import freeze, layer_width, rate_factors, split_by_rate

LOG = logging.getLogger("textmill")
O = TypeVar("O", bound=torch.optim.Optimizer)  # noqa: E741  # an optimizer

HIDDEN = ("add_param_group", "load_state_dict", "state_dict", "zero_grad")
"""The methods that torch hides from its compiler."""
_MADE: dict[type[Any], type[Any]] = {}


class Optimizer(Component):
    """Base of the optimizers: a Config that builds a ``torch.optim.Optimizer``.

    Parameter groups come from the task (``Task.parameter_groups``: biases and norms are not
    decayed), without a task from the module. The schedule multiplies the rate of each group.
    """

    class Config(BaseConfig, first=("lr", "freeze")):
        """Settings every optimizer has."""

        lr: float = 1e-3
        """Peak learning rate; the schedule multiplies it."""
        freeze: tuple[str, ...] = ()
        """Names of parameters that are held still, as ``["encoder.*"]``; ``*`` is any text."""
        layer_decay: float = 1.0
        """Factor on the rate from one layer to the one below, as 0.8; embeddings are lowest."""
        rates: Mapping[str, float] = setting(factory=dict)
        """Factors on the rate by names of parameters, as ``{"decoder.*": 0.5}``."""
        lr_width: int | None = None
        """Features of the layers that ``lr`` is meant for: it is divided by how many times as many
        the module's have; null: it is meant for this module."""

        limits: ClassVar[Mapping[str, Sequence[str]]] = {}
        """A subclass's own numbers by what they must be, as ``require`` has it."""

        def __post_init__(self) -> None:
            """Refuses numbers with which no sensible step is taken."""
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
        def build(self, *, module: nn.Module, task: Task | None = None) -> torch.optim.Optimizer:  # type: ignore[override]
            """Makes the optimizer over the task's parameter groups, else the module's own."""
            line = freeze(module, self.freeze)
            if line is not None:
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

        @abstractmethod
        def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
            """Makes the optimizer over groups, each with its own ``lr``."""


class AlgorithmConfig(Optimizer.Config):
    """Base of the settings of an optimizer that is one class, called with the settings."""

    algorithm: ClassVar[type[torch.optim.Optimizer]]
    """A class of torch's kind of optimizers."""

    def arguments(self) -> dict[str, Any]:
        """What the algorithm is called with: the settings but those of the groups."""
        of_groups = ("freeze", "layer_decay", "lr_width", "rates")
        names = (field.name for field in fields(self))
        return {name: getattr(self, name) for name in names if name not in of_groups}

    @override
    def make(self, groups: list[dict[str, Any]], module: nn.Module) -> torch.optim.Optimizer:
        return without_compiler(self.algorithm)(groups, **self.arguments())


def without_compiler(kind: type[O]) -> type[O]:
    """A subclass that does the same, of the same name, and leaves ``torch._dynamo`` alone.

    Args:
        kind: A class of optimizers; without effect where torch has no such decorators.

    Example:
        >>> SGD = without_compiler(torch.optim.SGD)
        >>> weight = torch.ones(2, requires_grad=True)
        >>> optimizer = SGD([weight], lr=0.5)
        >>> weight.grad = torch.ones(2)
        >>> optimizer.step()
        >>> weight.tolist(), isinstance(optimizer, torch.optim.SGD)
        ([0.5, 0.5], True)
    """
    if kind not in _MADE:
        plain: dict[str, Any] = {name: inspect.unwrap(getattr(kind, name)) for name in HIDDEN}
        plain["step"] = torch.no_grad()(inspect.unwrap(kind.step))
        plain |= {"__doc__": kind.__doc__, "__module__": kind.__module__}
        _MADE[kind] = type(kind.__name__, (kind,), plain)
    made: type[O] = _MADE[kind]
    return made
