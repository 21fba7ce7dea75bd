"""The update of a step: from the losses of its batches to weights that have moved."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor

from textmill.checkpoint.parts import Stateful
from textmill.checkpoint.shards import TensorRows
from textmill.data.batching import Filler
from textmill.metrics.streaming import ExactSum
from textmill.runtime.devices import Env
from textmill.runtime.ranks import Ranks
from textmill.runtime.seeds import HostRandom, fold, seed_all
from textmill.tasks.batches.compared_rows import ComparedRows
from textmill.tasks.task import Batches, BatchRows, Loss, Task, loss_of
from textmill.training.data_parallel.fsdp import FullySharded, check_elementwise, is_sharded
from textmill.training.data_parallel.gradient_sums import GradientSums
from textmill.training.data_parallel.wrapped import WrappedModule, is_wrapped
from textmill.training.ema import Weights
from textmill.training.layer_rates import present_rate
from textmill.training.nonfinite import NonFinite
from textmill.training.precision import LossScale, Numbers, autocast, settled
from textmill.training.progress import Progress
from textmill.training.schedules.schedule import Schedule
from textmill.training.trainer_config import TrainerConfig

MOST_PENDING = 1024
"""Batches whose sums wait; 512 bytes each on CUDA."""


class RunningLoss:
    """Sums of the training loss since the last report: exact, and adding waits for no device."""

    def __init__(self) -> None:
        self._clear()

    def _clear(self) -> None:
        self.count = ExactSum()
        self.sums: dict[str, ExactSum] = defaultdict(ExactSum)
        self._pending: list[tuple[tuple[str, ...], Tensor]] = []
        self.steps, self.examples, self.seconds = 0, 0, 0.0

    def add(self, loss: Loss) -> None:
        """Adds one batch; its numbers may be changed in place afterwards."""
        values = {"loss": loss.total, **loss.sums}
        numbers = (loss.count, *values.values())
        if not _alike(numbers):
            self.count.add(loss.count)
            for name, value in values.items():
                self.sums[name].add(value)
            return
        # One copy of all takes 2 microseconds; one of each takes 4 for every number.
        self._pending.append((tuple(values), torch.stack(numbers).detach()))
        if len(self._pending) >= MOST_PENDING:
            self._settle()

    def took(self, examples: int, *, seconds: float) -> None:
        """Counts a step that has been taken."""
        self.steps, self.examples = self.steps + 1, self.examples + examples
        self.seconds += seconds

    def pop(self) -> tuple[dict[str, float], dict[str, float]]:
        """The means since the last report and the rates by the wall clock; starts anew."""
        self._settle()
        count, seconds = float(self.count.exact()), max(1e-9, self.seconds)
        sums = {name: float(total.exact()) for name, total in self.sums.items()}
        values = {name: total / count for name, total in sums.items()} if count else {}
        rates = {
            "steps_per_second": self.steps / seconds,
            "examples_per_second": self.examples / seconds,
        }
        if count != self.examples:  # a text with one label: they are one number
            rates["targets_per_second"] = count / seconds
        self._clear()
        return values, rates

    def state_dict(self) -> dict[str, Any]:
        """The sums as text that is read back exactly."""
        self._settle()
        return {
            "count": self.count.state(),
            "sums": {name: total.state() for name, total in self.sums.items()},
            "steps": self.steps,
            "examples": self.examples,
            "seconds": self.seconds,
        }

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Takes saved sums."""
        self._clear()
        self.count.add_state(str(state["count"]))
        for name, total in state["sums"].items():
            self.sums[name].add_state(str(total))
        taken = Progress.saved(**{name: state[name] for name in ("steps", "examples", "seconds")})
        self.steps, self.examples, self.seconds = taken.steps, taken.examples, taken.seconds

    def joined(self, states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        """The sums of all ranks, of their states; steps and seconds are those of each of them."""
        whole = RunningLoss()
        for state in states:
            whole.count.add_state(str(state["count"]))
            for name, total in state["sums"].items():
                whole.sums[name].add_state(str(total))
            whole.examples += state["examples"]
        alike = {name: states[0][name] for name in ("steps", "seconds")}
        return {**whole.state_dict(), **alike}

    def share(self, state: Mapping[str, Any], rank: int, world_size: int) -> Mapping[str, Any]:
        """All of it for rank 0; the others have the steps."""
        return state if rank == 0 else {**state, **_NOTHING}

    def _settle(self) -> None:
        """Reads what waits on a device: in one transfer where all batches have the same sums."""
        pending, self._pending = self._pending, []
        by_kind: dict[tuple[tuple[str, ...], torch.dtype], list[Tensor]] = {}
        for names, numbers in pending:
            by_kind.setdefault((names, numbers.dtype), []).append(numbers)
        for (names, _), rows in by_kind.items():
            counts, *columns = torch.stack(rows).T.tolist()
            self.count.add_all(counts)
            for name, column in zip(names, columns, strict=True):
                self.sums[name].add_all(column)


_NOTHING: dict[str, Any] = {"count": ExactSum().state(), "sums": {}, "examples": 0}


def _alike(numbers: Sequence[Tensor | float]) -> bool:
    """Whether numbers are tensors without dimensions, of one type on one device."""
    kinds = {(n.ndim, n.dtype, n.device) if isinstance(n, Tensor) else None for n in numbers}
    return len(kinds) == 1 and all(kind and kind[0] == 0 for kind in kinds)


@dataclass(frozen=True)
class Gradient:
    """The gradient of the sum of a step's losses, and what makes it that of the mean.

    All but the tensors, one of each parameter that has any, are of the shape ``[]``.
    """

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


class Updates:
    """Moves the weights by the losses of a step's batches.

    In one place: the types of the numbers, the scale of the loss, the norm of the gradient and the
    most it may be, what is done where it is not finite, the learning rates (those of the groups are
    of factor 1), the average of the weights, and the losses since the last report, of all ranks.
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
        self.config, self.task, self.ranks = config, task, Ranks.of(env)
        self.seed = config.seed if env.is_main else fold(config.seed, "rank", env.rank)
        self.optimizer, self.schedule = optimizer, schedule
        self.weights = Weights(task.module, ema=config.ema)
        self.device = env.device
        self.compute_in(settled(config.precision, env.device))
        self.nonfinite = NonFinite(
            config.on_nonfinite, limit=config.max_nonfinite, loss_bound=config.loss_upper_bound
        )
        self.running_loss = RunningLoss()
        self.random = HostRandom()
        if config.data_parallelism == "fsdp":
            check_elementwise(optimizer)
        self.parameters = [p for g in optimizer.param_groups for p in g["params"]]
        order = {p: place for place, p in enumerate(task.module.parameters())}
        by_layer = sorted(self.parameters, key=lambda p: order.get(p, len(order)))
        self.parallel: GradientSums | FullySharded | WrappedModule = GradientSums(
            self.ranks, by_layer
        )
        self.base_lrs = [group["lr"] for group in optimizer.param_groups]
        self.compared_rows: ComparedRows | None = None
        """What compares rows of a batch that is divided among several ranks, if anything does."""
        self._zero = torch.zeros((), device=task.device)
        self._losses: list[Loss] = []
        self._left = 0
        if self.ranks.size > 1 and is_wrapped(task.module):
            self.parallel = WrappedModule(task, self.ranks, optimizer, config.data_parallelism)
            self.weights.module = task.module
        elif is_sharded(task.module):
            self.divide()

    @property
    def together(self) -> bool:
        """Whether no rank can compute a batch, or a part of one, without the others."""
        own = isinstance(self.parallel, GradientSums) and self.config.data_parallelism == "ddp"
        return self.ranks.size > 1 and not own

    def divide(self) -> Mapping[str, Callable[[str], TensorRows | None]]:
        """Gives each rank its share of the weights where ``trainer.data_parallelism`` is ``fsdp``.

        Returns what says where a tensor of a part stands in the whole; nothing where each rank has
        all of them.
        """
        shares = self.config.data_parallelism == "fsdp" or is_sharded(self.task.module)
        if shares and self.ranks.size > 1 and isinstance(self.parallel, GradientSums):
            self.parallel = FullySharded(self.task.module, self.ranks, self.optimizer)
            self.parameters = self.parallel.parameters
            self.weights.module = self.parallel.shards
        return self.parallel.rows if isinstance(self.parallel, FullySharded) else {}

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
        """What must survive a crash, by the name it is saved under."""
        return {
            **self.weights.parts,
            **self.nonfinite.parts,
            **self.loss_scale.parts,
            "optimizer": self.optimizer,
            "sums": self.running_loss,
        }

    def compute_in(self, precision: Numbers) -> None:
        """Sets the type of the matrix products, before the first step."""
        self.precision = precision
        self.autocast = autocast(precision, self.device)
        self.loss_scale = LossScale(precision)

    def begin(self, taken: int, *, batches: int) -> None:
        """Begins a step of so many batches: dropout is a function of the steps taken before."""
        seed_all(self.seed, taken)
        self._losses, self._left = [], batches
        if not self.task.module.training:  # train() takes 2 microseconds a submodule
            self.task.module.train()

    def loss(self, batch: Any, batches: Batches) -> Loss:
        """The loss of one of the batches; of a filler it is 0, and leaves the task as it was."""
        called = partial(self.parallel.called, is_last=self._left == 1)
        if not isinstance(batch, Filler):
            with self._comparing(counted=True):
                return called(partial(loss_of, self.task, batch, BatchRows(batches, batch)))
        before = [(part, part.state_dict()) for part in self.task.parts.values()]
        with self._comparing(counted=False):
            rows = BatchRows(batches, batch.batch)
            loss = called(partial(loss_of, self.task, batch.batch, rows))
        for part, state in before:
            part.load_state_dict(state)
        return Loss(loss.total * 0, loss.count * 0)

    def _comparing(self, *, counted: bool) -> AbstractContextManager[None]:
        """Compares a batch's rows with those of the other ranks, where the task compares any."""
        rows = self.compared_rows
        return nullcontext() if rows is None else rows.over(self.ranks, counted=counted)

    def backward(self, loss: Loss) -> None:
        """Adds the gradient of a batch: of its sum, for what divides it is known in the end."""
        self._losses.append(loss.detach())
        self._left -= 1
        with nullcontext() if self._left else self.parallel.last_backward():
            self.loss_scale.of(loss.total).backward()

    def gradient(self, examples: int, seconds: float) -> Gradient:
        """The gradient of all batches of all ranks since :meth:`begin`, as the parameters have it.

        Args:
            examples: The rows of this rank's batches.
            seconds: What this rank's clock says.
        """
        count = total = self._zero
        for loss in self._losses:
            count, total = count + loss.count, total + loss.total
        if self.ranks.size > 1:
            count, total, examples, seconds = self._summed(count, total, examples, seconds)
        factor = 1 / self.loss_scale.now / count
        gradients = [p.grad for p in self.parameters if p.grad is not None]
        norm = self.parallel.norm(gradients) * factor
        number, most = norm + self.nonfinite.bounded(total, count), self.config.clip_norm
        over = number.new_zeros(()) if most is None else (norm > most).to(number.dtype)
        # The one wait for the device in a step; what models of some kinds ask beside is in
        # tests/training/test_waits.py.
        value, is_long = torch.stack([number, over]).tolist()
        finite, long = math.isfinite(value), bool(is_long)
        return Gradient(gradients, factor, norm, total, count, finite, long, examples, seconds)

    def _summed(
        self, count: Tensor, total: Tensor, examples: int, seconds: float
    ) -> tuple[Tensor, Tensor, int, float]:
        """Adds up a step over all ranks: its gradients, and its numbers at once."""
        used = self.parallel.send()
        own = [float(examples), seconds if self.ranks.env.is_main else 0.0, *map(float, used)]
        sums = torch.tensor([0.0, 0.0, *own], dtype=torch.float64, device=self._zero.device)
        sums[0], sums[1] = count, total
        _, _, rows, clock, *users = self.ranks.sum_(sums).tolist()
        self.parallel.receive([number > 0 for number in users])
        return sums[0].to(self._zero.dtype), sums[1].to(self._zero.dtype), int(rows), clock

    def apply(
        self, gradient: Gradient, *, step: int, total: int | None, history: Sequence[float]
    ) -> None:
        """Clips a finite gradient, and moves the weights by it at the rate of the schedule.

        Its arguments are those of :meth:`textmill.training.schedules.Schedule.__call__`.
        """
        self.nonfinite.fine(step)
        self.loss_scale.fine()
        factor, most = gradient.factor, self.config.clip_norm
        if most is not None and gradient.long:
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

        Returns whether the run is to go back to an earlier step. The rows of the step are read
        where an error names them.

        Raises:
            NonFiniteError: The run is to end with it.
            DataError: The step has no target.
        """
        norm, total, count = gradient.norm, gradient.total, gradient.count
        loss_is_fine = self.nonfinite.bounded(total, count).isfinite() and count
        overflowed = bool(loss_is_fine) and self.loss_scale.overflowed()
        if not overflowed:
            broken = self.nonfinite.broken
            if self.ranks.size > 1:
                numbers = [{"row": row["row"]} for row in examples if "row" in row]
                examples = [row for rows in self.ranks.gather(numbers) for row in rows]
            error = broken(step, norm=norm, total=total, count=count, examples=examples)
            self.nonfinite.take(error, step=step)
        self.clear()
        return not overflowed and self.config.on_nonfinite == "rollback"

    def clear(self) -> None:
        """Forgets the gradients that lie in the parameters."""
        self.optimizer.zero_grad(set_to_none=True)

    def pop(self) -> tuple[dict[str, float], dict[str, float]]:
        """The values since the last report, and the rates by the wall clock; starts anew."""
        if self.ranks.size > 1:
            states = self.ranks.gather(self.running_loss.state_dict())
            self.running_loss.load_state_dict(self.running_loss.joined(states))
        values, rates = self.running_loss.pop()
        values |= {**self.nonfinite.pop(), **self.loss_scale.pop()}
        values["lr"] = present_rate(self.optimizer, self.base_lrs)
        return values, rates
