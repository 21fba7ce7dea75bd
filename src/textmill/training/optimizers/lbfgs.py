"""L-BFGS: quasi-Newton steps, for smooth losses of all rows at once."""

from collections.abc import Sized
from typing import Any, ClassVar

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.errors import UserError
from textmill.tasks.task import Task
from textmill.training import registries
from textmill.training.optimizers.foreach_optimizer import ForeachOptimizer
from textmill.training.optimizers.optimizer import AlgorithmConfig, Optimizer

__all__ = ["LBFGS", "LBFGSSteps"]

OVERSHOT = 0.9
"""Share of the slope at a step's beginning that may be left, upwards, at its end: the curvature
condition with the constant that is usual for quasi-Newton directions."""
TRIES = 2
"""How often at most one step is shortened."""
GROWTH = 2.0
"""How many times as long as the last step a step is at most: after a bad pair it can be a hundred
times too long, and the steps back from it cost gradients."""
FLAT = 1e-10
"""Curvature, relative to the change of the gradient, below which a pair is not kept."""

Vector = list[Tensor]
"""The parameters, or something of each: one long vector, in parts."""


class LBFGSSteps(ForeachOptimizer):
    """L-BFGS over the parameters of all groups together; of the loss it sees gradients alone.

    What is kept beside the tensors are numbers of the first group: ``taken``, which part of the
    direction was gone; ``slope`` along it at its beginning; ``tries``; ``pairs`` seen so far.
    """

    @override
    def move_groups(self) -> None:
        """Goes along a new direction, or back on the last one where it went too far."""
        places = [(p, group) for group in self.param_groups for p in group["params"]]
        parameters = [p for p, _ in places]
        if all(p.grad is None for p in parameters):
            return
        raw = [torch.zeros_like(p) if p.grad is None else p.grad for p in parameters]
        decays = [0.0 if p.grad is None else group["weight_decay"] for p, group in places]
        gradient = list(torch._foreach_add(raw, torch._foreach_mul(parameters, decays)))
        if self.param_groups[0]["taken"]:
            if self._go_back(parameters, gradient):
                return
            self._remember(parameters, gradient)
        direction = self._downhill(parameters, gradient, length=_dot(raw, raw) ** 0.5)
        rates = [0.0 if p.grad is None else group["lr"] for p, group in places]
        torch._foreach_mul_(direction, rates)
        self._shorten(parameters, direction)
        torch._foreach_add_(parameters, direction)
        for parameter, *kept in zip(parameters, direction, gradient, strict=True):
            state, history = self.state[parameter], self.param_groups[0]["history"]
            state["direction"], state["gradient"] = kept
            for name in ("steps", "changes"):  # at once, so that the first step tells the memory
                if name not in state:
                    state[name] = parameter.new_zeros(history, *parameter.shape)
        self.param_groups[0] |= {"taken": 1.0, "slope": _dot(gradient, direction), "tries": 0}

    def _go_back(self, parameters: Vector, gradient: Vector) -> bool:
        """Shortens the last step to where the line through both slopes is level, if need be."""
        search = self.param_groups[0]
        direction = self.kept("direction", parameters)
        end, begin = _dot(gradient, direction), abs(search["slope"])
        if search["tries"] == TRIES or end <= OVERSHOT * begin:
            return False
        taken = search["taken"] * begin / (begin + end)
        torch._foreach_add_(parameters, direction, alpha=taken - search["taken"])
        search |= {"taken": taken, "tries": search["tries"] + 1}
        return True

    def _shorten(self, parameters: Vector, direction: Vector) -> None:
        """Holds a direction to ``GROWTH`` times the step before."""
        last = self.kept("direction", parameters)
        most = GROWTH * self.param_groups[0]["taken"] * _dot(last, last) ** 0.5
        length = _dot(direction, direction) ** 0.5
        if 0 < most < length:
            torch._foreach_mul_(direction, most / length)

    def _remember(self, parameters: Vector, gradient: Vector) -> None:
        """Keeps how the step changed the gradient, over the oldest that is kept."""
        group = self.param_groups[0]
        step = list(torch._foreach_mul(self.kept("direction", parameters), group["taken"]))
        change = list(torch._foreach_sub(gradient, self.kept("gradient", parameters)))
        if _dot(step, change) <= FLAT * _dot(change, change):
            return
        at = group["pairs"] % group["history"]
        for parameter, *pair in zip(parameters, step, change, strict=True):
            for name, part in zip(("steps", "changes"), pair, strict=True):
                self.state[parameter][name][at] = part
        group["pairs"] += 1

    def _downhill(self, parameters: Vector, gradient: Vector, *, length: float) -> Vector:
        """The inverse Hessian that the kept pairs tell of, times the gradient, downwards.

        Nocedal and Wright 2006, algorithm 7.4. Where there is no pair yet it is the gradient,
        divided by its length without the decay.
        """
        direction = list(torch._foreach_neg(gradient))
        group = self.param_groups[0]
        last = range(max(0, group["pairs"] - group["history"]), group["pairs"])
        found = [
            [
                [self.state[p][name][i % group["history"]] for p in parameters]
                for name in ("steps", "changes")
            ]
            for i in last
        ]
        if not found:
            return list(torch._foreach_div(direction, max(length, 1e-12)))
        shares = []
        for step, change in reversed(found):
            shares.append(_dot(step, direction) / _dot(step, change))
            torch._foreach_add_(direction, change, alpha=-shares[-1])
        step, change = found[-1]
        torch._foreach_mul_(direction, _dot(step, change) / _dot(change, change))
        for (step, change), share in zip(found, reversed(shares), strict=True):
            rest = share - _dot(change, direction) / _dot(step, change)
            torch._foreach_add_(direction, step, alpha=rest)
        return direction


def _dot(one: Vector, other: Vector) -> float:
    return sum(torch.dot(a.flatten(), b.flatten()).item() for a, b in zip(one, other, strict=True))


@registries.optimizers.register("lbfgs")
class LBFGS(Optimizer):
    """L-BFGS (Liu and Nocedal 1989), which takes tens of steps where the loss is convex.

    Each step is one of all rows, in one order: ``trainer.accumulate=epoch`` and
    ``train_data.shuffle=false``, no ``trainer.clip_norm``. A step that went too far is shortened by
    the next one, by the secant of the slopes, instead of a line search that needs losses. The last
    has no next one: let the rate fall at the end (``lr_scheduler.type=linear``, ``hold=0.8``). It
    keeps ``2 history + 2`` numbers for each that learns.

    Example:
        >>> optimizer = LBFGS.Config(weight_decay=0.01).build(module=nn.Linear(2, 2))
        >>> type(optimizer).__name__, optimizer.param_groups[0]["lr"]
        ('LBFGSSteps', 1.0)
    """

    class Config(AlgorithmConfig):
        """Settings of L-BFGS."""

        lr: float = 1.0
        """Factor on every step; 1 is a whole one."""
        history: int = 5
        """Steps that the next one remembers; 3 to 20 are usual."""
        weight_decay: float | None = None
        """Share of a matrix that is added to its gradient (L2); null: 2 over the rows of
        ``train_data``, as scikit-learn's ``LinearSVC(C=0.5)`` and ``Ridge(alpha=1)`` have."""

        algorithm = LBFGSSteps
        limits: ClassVar = {"sizes": ["history"], "not_negative": ["weight_decay"]}

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self,
            *,
            module: nn.Module,
            task: Task | None = None,
            train_data: object = None,
        ) -> torch.optim.Optimizer:
            """Makes the optimizer over the task's parameter groups, else the module's own.

            Raises:
                UserError: The decay is that of the rows, and nobody can say how many there are.
            """
            optimizer = super().build(module=module, task=task)
            if self.weight_decay is None:
                decay = 2 / _rows(train_data)
                for group in optimizer.param_groups:
                    if group["weight_decay"] is None:
                        group["weight_decay"] = decay
            return optimizer

        @override
        def arguments(self) -> dict[str, Any]:
            return {**super().arguments(), "taken": 0.0, "slope": 0.0, "tries": 0, "pairs": 0}


def _rows(train_data: object) -> int:
    if isinstance(train_data, Sized) and len(train_data):
        return len(train_data)
    raise UserError(
        "optimizer.weight_decay is null, which is 2 over the rows of train_data, but "
        f"{'there is no train_data' if train_data is None else 'it does not say how many it has'}. "
        "Set optimizer.weight_decay, as 0.002 for a thousand rows."
    )
