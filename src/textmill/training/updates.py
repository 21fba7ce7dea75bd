"""What happens between the batches of a step and weights that have moved."""

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.optim.lr_scheduler import LRScheduler

from textmill.checkpoint.parts import Stateful
from textmill.errors import UserError
from textmill.models.layers.precision import Numbers
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks
from textmill.runtime.seeds import HostRandom, fold, seed_all
from textmill.tasks.several.multitask import part_name
from textmill.tasks.task import Loss, Task
from textmill.training.fsdp import FullySharded, check_elementwise, is_sharded
from textmill.training.gradient_sums import GradientSums, RowsOf, WrappedModule, is_wrapped
from textmill.training.layer_rates import present_rate
from textmill.training.nonfinite import NonFinite
from textmill.training.precision import Arithmetic, settled
from textmill.training.progress import Clock, Progress
from textmill.training.running_loss import RunningLoss
from textmill.training.schedules import Schedule, rates_by
from textmill.training.sources import Group, TakenBatch
from textmill.training.trainer_config import TrainerConfig
from textmill.training.weights.average import Weights
from textmill.training.weights.pruning import Pruner

LossOf = Callable[[TakenBatch], Loss]


@dataclass(frozen=True)
class Gradient:
    """The gradient of the sum of a step's losses, and what makes it that of the mean.

    All but the tensors, one of each parameter that has any, are of the shape ``[]``.
    """

    parameters: list[nn.Parameter]
    tensors: list[Tensor]
    factor: Tensor
    """One over the targets of all ranks and batches, and over the scale of the loss."""
    norm: Tensor
    """That of the mean's gradient."""
    total: Tensor
    """The sum of the losses."""
    count: Tensor
    """Their targets."""
    finite: bool
    """Whether both loss and norm are numbers, and the loss is under its bound."""
    long: bool
    """Whether the norm is over ``trainer.clip_norm``."""
    examples: int
    """Rows of the step, of all ranks."""
    seconds: float
    """What the clock of rank 0 says, by which all ranks do what is due."""


class Passes:
    """Forward and backward passes over the batches of a step, as many as an algorithm asks for.

    An optimizer that needs more than one gradient has a method ``gradient_of_step(passes)``, which
    gives the :class:`Gradient` that the weights are moved by, and calls :meth:`gradient` for each
    that it needs: at weights that it has moved meanwhile, or of another loss of the same batches.
    Each is the gradient of all ranks. Dropout and the state that a task carries are the same in all
    passes of a step.
    """

    def __init__(self, updates: "Updates", group: Group, *, step: int) -> None:
        self.updates, self.group, self.step = updates, group, step
        self.batches = group.batches
        self.losses: list[Loss] = []
        """Those of the first pass, of each batch."""
        self._carried = [(part, part.state_dict()) for part in updates.task.parts.values()]
        self._last: Gradient | None = None

    def gradient(self, loss: LossOf = TakenBatch.loss) -> Gradient:
        """The gradient of the batches' losses; the parameters have it until the next pass."""
        updates, ranks, parallel = self.updates, self.updates.ranks, self.updates.parallel
        if self._last is not None:
            updates.clear()
            for part, state in self._carried:
                part.load_state_dict(state)
        updates.arithmetic.begin()
        seed_all(updates.seed, self.step - 1)  # dropout is a function of the steps taken before
        left, losses = len(self.batches), list[Loss]()
        for batch in self.batches:
            left -= 1
            compute = partial(parallel.called, partial(self._loss, batch, loss), is_last=not left)
            # A gradient of the sum, for what divides it is known in the end.
            sending = nullcontext() if left else parallel.last_backward()
            losses.append(updates.arithmetic.differentiate(compute, sending).detach())
        updates.arithmetic.end()
        self.losses = self.losses or losses
        examples, seconds = sum(batch.size for batch in self.batches), updates.clock.seconds
        count = total = updates.zero
        for each in losses:
            count, total = count + each.count, total + each.total
        if ranks.size > 1:
            count, total, examples, seconds = self._summed(count, total, examples, seconds)
        factor = 1 / updates.arithmetic.scale.now / count
        self._last = updates.present(factor, total, count, examples=examples, seconds=seconds)
        return self._last

    def end(self, gradient: Gradient) -> None:
        """Gives the parameters the gradient that they are moved by."""
        if gradient is not self._last:
            self.updates.clear()
            for parameter, tensor in zip(gradient.parameters, gradient.tensors, strict=True):
                parameter.grad = tensor

    def _loss(self, batch: TakenBatch, loss: LossOf) -> Loss:
        """The loss of a batch; of one that does not count 0, with its task left as it was."""
        rows = batch.source.compared
        over = (
            nullcontext() if rows is None else rows.over(self.updates.ranks, counted=batch.counted)
        )
        if batch.counted:
            with over:
                return loss(batch)
        before = [(part, part.state_dict()) for part in batch.source.task.parts.values()]
        with over:
            found = loss(batch)
        for part, state in before:
            part.load_state_dict(state)
        return Loss(found.total * 0, found.count * 0)

    def _summed(
        self, count: Tensor, total: Tensor, examples: int, seconds: float
    ) -> tuple[Tensor, Tensor, int, float]:
        """Adds up a pass over all ranks: its gradients, and its numbers at once."""
        ranks, parallel, zero = self.updates.ranks, self.updates.parallel, self.updates.zero
        used = parallel.send()
        own = [float(examples), seconds if ranks.env.is_main else 0.0, *map(float, used)]
        sums = torch.tensor([0.0, 0.0, *own], dtype=torch.float64, device=zero.device)
        sums[0], sums[1] = count, total
        _, _, rows, clock, *users = ranks.sum_(sums).tolist()
        parallel.receive([number > 0 for number in users])
        return sums[0].to(zero.dtype), sums[1].to(zero.dtype), int(rows), clock


class Updates:
    """Moves the weights by the losses of a step's batches.

    What it is made of can each be another: how numbers are computed and losses scaled
    (``arithmetic``), how ranks share a step (``parallel``), which passes make the gradient (the
    optimizer, by :class:`Passes`), what is served (``weights``), and what is done about a gradient
    that is not finite (``nonfinite``).
    """

    def __init__(
        self,
        config: TrainerConfig,
        *,
        task: Task,
        optimizer: torch.optim.Optimizer,
        schedule: Schedule | LRScheduler,
        env: Env,
        clock: Clock,
    ) -> None:
        self.config, self.task, self.ranks = config, task, Ranks.of(env)
        self.seed = config.seed if env.is_main else fold(config.seed, "rank", env.rank)
        self.optimizer, self.clock = optimizer, clock
        self.rates = rates_by(schedule, optimizer)
        averaging = {"swa_start": config.swa_start, "swa_every": config.swa_every}
        self.weights = Weights(task.module, ema=config.ema, **averaging)
        self.pruner = Pruner(config.pruning, task.module)
        self.device = env.device
        self.compute_in()
        self.nonfinite = NonFinite(
            config.on_nonfinite, limit=config.max_nonfinite, loss_bound=config.loss_upper_bound
        )
        self.losses = {name: RunningLoss() for name in getattr(task, "learnt", ("",))}
        """Since the last report, by source."""
        self.passes: list[Passes] = []
        """Those of the step at hand, one for each group of its batches."""
        self.random = HostRandom()
        if config.data_parallelism == "fsdp":
            check_elementwise(optimizer)
        if self.pruner.blocks and self.ranks.size > 1 and self._shares_weights:
            raise UserError(
                "trainer.pruning compares whole units, of which a rank has a share with fsdp or "
                "fully_shard. Set trainer.data_parallelism=ddp, or leave trainer.pruning out."
            )
        self.parameters = [p for g in optimizer.param_groups for p in g["params"]]
        self.gradient_of: Callable[[Passes], Gradient] = getattr(
            optimizer, "gradient_of_step", Passes.gradient
        )
        self.zero = torch.zeros((), device=task.device)
        order = {p: place for place, p in enumerate(task.module.parameters())}
        by_layer = sorted(self.parameters, key=lambda p: order.get(p, len(order)))
        self.parallel: GradientSums | FullySharded | WrappedModule = GradientSums(
            self.ranks, by_layer
        )
        if self.ranks.size > 1 and is_wrapped(task.module):
            self.parallel = WrappedModule(task, self.ranks, optimizer, config.data_parallelism)
            self.weights.module = task.module
        elif is_sharded(task.module):
            self.divide()

    def compute_in(self, recorded: Numbers | None = None) -> Numbers:
        """Chooses the arithmetic by ``trainer.precision``; ``auto`` is what a run began with."""
        numbers = settled(self.config.precision, self.device, recorded=recorded)
        # Copies of all weights are what a rank that has a share of them has no room for.
        whole = self.config.data_parallelism != "fsdp"
        self.arithmetic = Arithmetic(numbers, self.device, keeps_copies=whole)
        return numbers

    @property
    def together(self) -> bool:
        """Whether no rank can compute a batch, or a part of one, without the others."""
        divided = self.parallel.together or self.config.data_parallelism == "fsdp"
        return self.ranks.size > 1 and divided

    @property
    def _shares_weights(self) -> bool:
        return self.config.data_parallelism == "fsdp" or is_sharded(self.task.module)

    def divide(self) -> Mapping[str, RowsOf]:
        """Gives each rank its share of the weights where ``trainer.data_parallelism`` is ``fsdp``.

        Returns what says where a tensor of a part stands in the whole; nothing where each rank has
        all of them.
        """
        if self._shares_weights and self.ranks.size > 1 and not self.parallel.rows:
            self.parallel = FullySharded(self.task.module, self.ranks, self.optimizer)
            self.parameters = self.parallel.parameters
            self.weights.module = self.parallel.shards
        return self.parallel.rows

    def whole(self, *, write: bool = False) -> AbstractContextManager[None]:
        """Has the whole module on each rank; with ``write`` what changes in the block remains."""
        return self.parallel.whole(write=write)

    @contextmanager
    def served(self) -> Iterator[None]:
        """Has in the module what is served, all of it on each rank, while the block runs."""
        with self.weights.averaged(), self.whole():
            yield

    def finish(self) -> None:
        """Leaves in the module what is served, all of it on each rank, for good."""
        self.weights.finish()
        self.parallel.finish()
        self.weights.module = self.task.module

    @property
    def parts(self) -> dict[str, Stateful]:
        return {
            **self.weights.parts,
            **self.pruner.parts,
            **self.rates.parts,
            **self.nonfinite.parts,
            **self.arithmetic.scale.parts,
            "optimizer": self.optimizer,
            **{part_name("sums", name): losses for name, losses in self.losses.items()},
        }

    def gradient(self, groups: Sequence[Group], *, step: int) -> Gradient:
        """The gradient that the weights are to be moved by in a step, from 1."""
        if not self.task.module.training:  # train() takes 2 microseconds a submodule
            self.task.module.train()
        self.passes = []
        found = list[Gradient]()
        for group in groups:
            passes = Passes(self, group, step=step)
            self.passes.append(passes)
            found.append(self.gradient_of(passes))
            passes.end(found[-1])
            if len(groups) > 1:
                self.clear()
        return found[0] if len(found) == 1 else self._added(found, groups)

    def _added(self, found: Sequence[Gradient], groups: Sequence[Group]) -> Gradient:
        """The gradient of the weighted sum of mean losses, which the parameters have after it."""
        total = self.zero
        for gradient, group in zip(found, groups, strict=True):
            total = total + group.weight * gradient.total / gradient.count
            torch._foreach_mul_(gradient.tensors, gradient.factor * group.weight)
            for parameter, tensor in zip(gradient.parameters, gradient.tensors, strict=True):
                parameter.grad = tensor if parameter.grad is None else parameter.grad + tensor
        one, examples = torch.ones_like(self.zero), sum(each.examples for each in found)
        return self.present(one, total, one, examples=examples, seconds=found[-1].seconds)

    def present(
        self, factor: Tensor, total: Tensor, count: Tensor, *, examples: int, seconds: float
    ) -> Gradient:
        """The gradient that the parameters have; the arguments are its fields."""
        parameters = [p for p in self.parameters if p.grad is not None]
        tensors = [p.grad for p in parameters if p.grad is not None]
        norm = self.parallel.norm(tensors) * factor
        number, most = norm + self.nonfinite.bounded(total, count), self.config.clip_norm
        over = number.new_zeros(()) if most is None else (norm > most).to(number.dtype)
        # The one wait for the device in a pass; what models of some kinds ask beside is in
        # tests/training/test_waits.py.
        value, is_long = torch.stack([number, over]).tolist()
        return Gradient(
            parameters,
            tensors,
            factor,
            norm,
            total,
            count,
            finite=math.isfinite(value),
            long=bool(is_long),
            examples=examples,
            seconds=seconds,
        )

    def apply(
        self,
        gradient: Gradient,
        before: Progress,
        now: Progress,
        *,
        total: int | None,
        history: Sequence[float],
    ) -> None:
        """Clips a finite gradient, and moves the weights by it at the rate of the schedule.

        The progress is that on both sides of the step; ``total`` and ``history`` are those of
        :meth:`textmill.training.schedules.Schedule.__call__`.
        """
        self.nonfinite.fine(now.steps)
        self.arithmetic.scale.fine()
        factor, most = gradient.factor, self.config.clip_norm
        if most is not None and gradient.long:
            factor = factor * most / gradient.norm
        torch._foreach_mul_(gradient.tensors, factor)
        self.rates.set(now.steps, total, history)
        self.optimizer.step()
        self.weights.update(before, now)
        self.pruner.update(now.steps, total, self.weights.average)
        for parameter in self.parameters:
            parameter.grad = None
        for passes in self.passes:
            for batch, loss in zip(passes.batches, passes.losses, strict=True):
                self.losses[batch.source.name].add(loss)

    def handle_nonfinite(self, gradient: Gradient, *, step: int) -> bool:
        """Leaves out a step whose gradient is not finite, by ``trainer.on_nonfinite``.

        Returns whether the run is to go back to an earlier step. The rows of the step are read
        where an error names them.
        """
        norm, total, count = gradient.norm, gradient.total, gradient.count
        loss_is_fine = self.nonfinite.bounded(total, count).isfinite() and count
        overflowed = bool(loss_is_fine) and self.arithmetic.scale.overflowed()
        if not overflowed:
            own = [batch for each in self.passes for batch in each.batches if batch.counted]
            rows: Any = (row for batch in own for row in batch.rows)
            if self.ranks.size > 1:
                numbers = [{"row": row["row"]} for row in rows if "row" in row]
                rows = [row for of_rank in self.ranks.gather(numbers) for row in of_rank]
            broken = self.nonfinite.broken
            error = broken(step, norm=norm, total=total, count=count, examples=rows)
            self.nonfinite.take(error, step=step)
        self.clear()
        return not overflowed and self.config.on_nonfinite == "rollback"

    def took(self, seconds: float) -> None:
        """Counts a step that was taken or left out, in so many seconds."""
        for passes in self.passes:
            own = sum(batch.size for batch in passes.batches)
            self.losses[passes.group.source.name].took(own, seconds=seconds / len(self.passes))

    @property
    def steps(self) -> int:
        """Steps since the last report, of any source."""
        return sum(losses.steps for losses in self.losses.values())

    def clear(self) -> None:
        self.optimizer.zero_grad(set_to_none=True)

    def pop(self) -> tuple[dict[str, float], dict[str, float]]:
        """The values since the last report, and the rates by the wall clock; starts anew."""
        values, rates = dict[str, float](), dict[str, float]()
        for name, losses in self.losses.items():
            if self.ranks.size > 1:
                losses.load_state_dict(losses.joined(self.ranks.gather(losses.state_dict())))
            found = losses.pop()
            start = f"{name}/" if name else ""
            values |= {f"{start}{key}": value for key, value in found[0].items()}
            rates |= {f"{start}{key}": value for key, value in found[1].items()}
        values |= {**self.nonfinite.pop(), **self.arithmetic.scale.pop()}
        values["lr"] = present_rate(self.optimizer, self.rates.peaks)
        return values, rates
