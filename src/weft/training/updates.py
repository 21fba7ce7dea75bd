"""The update of a step: from the losses of its batches to weights that have moved."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from weft.checkpoint.parts import Stateful
from weft.errors import UserError
from weft.runtime.devices import Env
from weft.runtime.ranks import Ranks
from weft.runtime.seeds import HostRandom, seed_all
from weft.tasks.task import Loss, Task
from weft.training.ema import Weights
from weft.training.layer_rates import present_rate
from weft.training.loop_state import RunningLoss
from weft.training.nonfinite import NonFinite
from weft.training.optimizers.lbfgs import LBFGSSteps
from weft.training.precision import LossScale, autocast
from weft.training.schedules.schedule import Schedule
from weft.training.trainer_config import TrainerConfig

__all__ = ["Gradient", "Updates"]


@dataclass(frozen=True)
class Gradient:
    """The gradient of the sum of a step's losses, and the factor that makes it that of the mean."""

    tensors: list[Tensor]
    """One of each parameter that has any."""
    factor: Tensor
    """One over the targets of all ranks and batches, and over the scale of the loss; ``[]``."""
    norm: Tensor
    """That of the mean's gradient, shape ``[]``."""
    total: Tensor
    """The sum of the losses, shape ``[]``."""
    count: Tensor
    """Their targets, shape ``[]``."""
    finite: bool
    """Whether both loss and norm are numbers, and the loss is under its bound."""


class Updates:
    """Moves the weights by the losses of a step's batches.

    In one place: the types of the numbers, the scale of the loss, the norm of the gradient and the
    most it may be, what is done where it is not finite, the learning rates, the average of the
    weights, and the losses since the last report.

    Args:
        config: Settings of the trainer.
        task: Whose module is trained.
        optimizer: Moves its parameters; the rates that its groups have are those of factor 1.
        schedule: The factor on the rates.
        env: Where this process is: the losses are summed over all ranks.
    """

    def __init__(
        self,
        config: TrainerConfig,
        *,
        task: Task,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule,
        env: Env,
    ) -> None:
        self.config, self.task, self.ranks = config, task, Ranks(env)
        self.optimizer, self.schedule = optimizer, schedule
        self.weights = Weights(task.module, ema=config.ema)
        self.autocast = autocast(config.precision, env.device)
        self.loss_scale = LossScale(config.precision)
        self.nonfinite = NonFinite(
            config.on_nonfinite, limit=config.max_nonfinite, loss_bound=config.loss_upper_bound
        )
        self.running_loss = RunningLoss()
        self.random = HostRandom()
        _check_gradients(optimizer, config)
        self.parameters = [p for g in optimizer.param_groups for p in g["params"]]
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self._zero = torch.zeros((), device=task.device)
        self._losses: list[Loss] = []

    @property
    def parts(self) -> dict[str, Stateful]:
        """What must survive a crash, by the name it is saved under."""
        return {
            **self.weights.parts,
            **self.nonfinite.parts,
            **self.loss_scale.parts,
            "optimizer": self.optimizer,
            "sums": self.running_loss,
        }

    def begin(self, taken: int) -> None:
        """Begins a step: dropout is a function of the steps taken before, not of history."""
        seed_all(self.config.seed, taken)
        self._losses = []
        if not self.task.module.training:  # train() takes 2 microseconds a submodule
            self.task.module.train()

    def backward(self, loss: Loss) -> None:
        """Adds the gradient of a batch: of its sum, for what divides it is known in the end."""
        self.loss_scale.of(loss.total).backward()
        self._losses.append(loss.detach())

    def gradient(self) -> Gradient:
        """The gradient of all batches since :meth:`begin`, as it lies in the parameters."""
        count = total = self._zero
        for loss in self._losses:
            count, total = count + loss.count, total + loss.total
        factor = self.ranks.size / self.loss_scale.now / self.ranks.sum_(count)
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = nn.utils.get_total_norm(gradients) * factor
        # The one wait for the device in a step; a random field's loss has another.
        finite = math.isfinite((norm + self.nonfinite.bounded(total, count)).item())
        return Gradient(gradients, factor, norm, total, count, finite)

    def apply(
        self, gradient: Gradient, *, step: int, total: int | None, history: Sequence[float]
    ) -> None:
        """Clips a finite gradient, and moves the weights by it at the rate of the schedule.

        Args:
            gradient: That of :meth:`gradient`.
            step: The step, from 1.
            total: Steps of the whole run, where known.
            history: The selected value of every evaluation, lower being better.
        """
        self.nonfinite.fine(step)
        self.loss_scale.fine()
        factor, most = gradient.factor, self.config.clip_norm
        if most is not None and gradient.norm > most:
            factor = factor * most / gradient.norm
        torch._foreach_mul_(gradient.tensors, factor)
        rate = self.schedule(step, total, history)
        for group, base in zip(self.optimizer.param_groups, self.base_lrs, strict=True):
            group["lr"] = base * rate
        self.optimizer.step()
        self.weights.update(step)
        for parameter in self.parameters:
            parameter.grad = None
        for loss in self._losses:
            self.running_loss.add(loss)

    def handle_nonfinite(
        self, gradient: Gradient, *, step: int, examples: Iterable[Mapping[str, Any]]
    ) -> bool:
        """Leaves out a step whose gradient is not finite, by ``trainer.on_nonfinite``.

        Args:
            gradient: That of :meth:`gradient`.
            step: The step, from 1.
            examples: The rows of the step; read where an error names them.

        Returns:
            Whether the run is to go back to an earlier step.

        Raises:
            NonFiniteError: The run is to end with it.
            DataError: The step has no target.
        """
        norm, total, count = gradient.norm, gradient.total, gradient.count
        loss_is_fine = self.nonfinite.bounded(total, count).isfinite() and count
        overflowed = bool(loss_is_fine) and self.loss_scale.overflowed()
        if not overflowed:
            broken = self.nonfinite.broken
            error = broken(step, norm=norm, total=total, count=count, examples=examples)
            self.nonfinite.take(error, step=step)
        self.clear()
        return not overflowed and self.config.on_nonfinite == "rollback"

    def clear(self) -> None:
        """Forgets the gradients that lie in the parameters."""
        self.optimizer.zero_grad(set_to_none=True)

    def pop(self) -> tuple[dict[str, float], dict[str, float]]:
        """The values since the last report, and the rates by the wall clock; starts anew."""
        values, rates = self.running_loss.pop()
        values |= {**self.nonfinite.pop(), **self.loss_scale.pop()}
        values["lr"] = present_rate(self.optimizer, self.base_lrs)
        return values, rates


def _check_gradients(optimizer: object, config: TrainerConfig) -> None:
    """Refuses steps of some rows, or of a cut gradient, where gradients are compared."""
    whole = config.accumulate == "epoch" and config.clip_norm is None
    if isinstance(optimizer, LBFGSSteps) and not whole:
        raise UserError(
            "optimizer.type=lbfgs compares the gradients of the same rows. Set "
            f"trainer.accumulate=epoch and trainer.clip_norm=null; they are {config.accumulate} "
            f"and {config.clip_norm}."
        )
