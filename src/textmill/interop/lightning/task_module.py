"""A task as a LightningModule: its losses, updates and metrics are those of textmill's loop."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from lightning.pytorch import Callback, LightningModule
from torch import Tensor, nn
from torch.optim.lr_scheduler import LambdaLR
from typing_extensions import override

from textmill.errors import UserError
from textmill.interop.lightning.data_module import HeldOutBatch, RecipeData
from textmill.interop.lightning.prepared import Prepared, refuse_ranks, save_run
from textmill.models.layers.linear import keeping_copies
from textmill.runtime.seeds import seed_all
from textmill.tasks.task import BatchRows, Loss, Metrics, Row, Task, loss_of, outputs_of
from textmill.training.evaluator import evaluation_rng
from textmill.training.nonfinite import NonFinite
from textmill.training.progress import Progress
from textmill.training.run_setup import kernels, selection_for, total_steps
from textmill.training.selection import Selection
from textmill.training.trainer_config import TrainerConfig
from textmill.training.weights.pruning import Pruning

STATE = "textmill"
"""The key of textmill's own state in a checkpoint of Lightning's."""


def as_module(task: Any) -> "TaskModule":
    """Makes the LightningModule of a recipe's task.

    Args:
        task: What :func:`~textmill.interop.lightning.data_module.as_datamodule` returned.
    """
    if not isinstance(task, RecipeData):
        found = type(task).__name__
        raise UserError(f"as_module takes what as_datamodule(recipe) has made; found a {found}.")
    return TaskModule(task.prepared)


class ClosedWhenFailed(Callback):
    """Restores kernels and generators when a fit fails, of which Lightning tells no module."""

    def __init__(self, *opened: ExitStack) -> None:
        super().__init__()
        self._opened = opened

    @override
    def on_exception(self, trainer: Any, module: Any, exception: BaseException) -> None:
        for stack in self._opened:
            stack.close()


class TaskModule(LightningModule):
    """A task of textmill.

    The loss that it gives Lightning is a sum over targets. As in textmill's loop, the gradient is
    divided by the number of all targets of a step, and shortened to ``clip_norm``: so it does not
    matter into how many batches a step is divided (``accumulate_grad_batches``). Values are logged
    as ``train/loss``, those of evaluations as ``valid/loss``, ``valid/accuracy``, ``test/loss`` ...
    """

    def __init__(self, prepared: Prepared) -> None:
        super().__init__()
        self.prepared, self.settings = prepared, prepared.trainer.config
        _refuse(self.settings)
        if hasattr(optimizer := prepared.trainer.optimizer, "gradient_of_step"):
            raise UserError(
                f"{type(optimizer).__name__} needs several gradients in a step, which Lightning's "
                "loop does not give: take another optimizer, or train without Lightning."
            )
        self.task: Task = prepared.trainer.task
        self.module: nn.Module = self.task.module
        self.schedule: Any = prepared.trainer.schedule
        if not callable(self.schedule):
            raise UserError(
                f"lr_scheduler is a {type(self.schedule).__name__}, which textmill's own loop "
                "moves on. To train under Lightning, set lr_scheduler.type to a name that "
                "'textmill list schedules' shows."
            )
        self.selection: Selection = selection_for(self.settings, self.task)
        self.nonfinite = NonFinite("stop", limit=1, loss_bound=self.settings.loss_upper_bound)
        self.examples = 0
        self._losses: list[Loss] = []
        self._metrics: Metrics = {}
        self._fit, self._evaluation = ExitStack(), ExitStack()

    @override
    def configure_optimizers(self) -> Any:
        """The optimizer, and the factor on its rates: a function of the steps taken."""
        optimizer, updates = self.prepared.trainer.optimizer, self.prepared.trainer.updates
        for group, rate in zip(optimizer.param_groups, updates.rates.peaks, strict=True):
            group.pop("initial_lr", None)  # of a fit before
            group["lr"] = rate
        self._rates = LambdaLR(optimizer, self._factor)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": self._rates, "interval": "step"},
        }

    def _factor(self, taken: int) -> float:
        """The factor of the next step; after the last step, the factor of the last."""
        total = self._total
        step = taken + 1 if total is None else min(taken + 1, total)
        return float(self.schedule(step, total, self.selection.losses))

    @property
    def _total(self) -> int | None:
        """Steps of the whole run as Lightning's Trainer limits it; None if that is not known."""
        trainer = self.trainer
        if isinstance(trainer.limit_train_batches, int):
            estimated = trainer.estimated_stepping_batches  # -1 or infinite: not known
            return int(estimated) if 0 < estimated < float("inf") else None
        steps, epochs = trainer.max_steps, trainer.max_epochs
        limited = replace(
            self.settings,
            max_steps=steps if steps > 0 else None,
            max_epochs=epochs if epochs and epochs > 0 else None,
            accumulate=trainer.accumulate_grad_batches,
        )
        return total_steps(limited, self.prepared.trainer.data.length)

    @override
    def on_fit_start(self) -> None:
        """Refuses what would train otherwise than the recipe says; enters the recipe's kernels."""
        refuse_ranks(self.trainer.world_size)
        wanted, given = self.settings.accumulate, self.trainer.accumulate_grad_batches
        if wanted not in (1, given):
            raise UserError(
                f"trainer.accumulate is {self.settings.accumulate}, but Lightning's Trainer has "
                f"accumulate_grad_batches={given}, which decides. Give the Trainer {wanted}, as "
                "as_trainer does, or the recipe trainer.accumulate=1."
            )
        self._fit.enter_context(kernels(self.settings, self.prepared.trainer.fast, self.task))

    @override
    def on_fit_end(self) -> None:
        self._fit.close()

    @override
    def configure_callbacks(self) -> list[Any]:
        return [ClosedWhenFailed(self._fit, self._evaluation)]

    @override
    def training_step(self, batch: Any, batch_idx: int) -> Tensor:
        """The sum of the losses of a batch; dropout is a function of the seed and the step."""
        if batch_idx % self.trainer.accumulate_grad_batches == 0:
            seed_all(self.settings.seed, self.trainer.global_step)
            self._losses = []
        rows = BatchRows(self.prepared.trainer.data.data, batch)
        with keeping_copies({}):
            loss = loss_of(self.task, batch, rows)
        self._losses.append(loss.detach())
        self.examples += self.task.batch_size(batch)
        if count := int(loss.count):
            values = {"loss": loss.total.detach(), **loss.sums}
            shown = {f"train/{name}": value / loss.count for name, value in values.items()}
            self.log_dict(shown, prog_bar=True, on_step=True, on_epoch=False, batch_size=count)
        return loss.total

    @override
    def configure_gradient_clipping(
        self,
        optimizer: torch.optim.Optimizer,
        gradient_clip_val: float | None = None,
        gradient_clip_algorithm: str | None = None,
    ) -> None:
        """Divides the gradient by the number of targets, and shortens it to ``clip_norm``.

        A ``gradient_clip_val`` of the Trainer replaces ``clip_norm``.
        """
        gradients = [p.grad for g in optimizer.param_groups for p in g["params"]]
        gradients = [gradient for gradient in gradients if gradient is not None]
        total = count = torch.zeros((), device=self.task.device)
        for loss in self._losses:
            total, count = total + loss.total, count + loss.count
        factor = 1 / count * self.trainer.accumulate_grad_batches  # Lightning has divided by it
        norm = nn.utils.get_total_norm(gradients) * factor
        scaled = self.trainer.precision == "16-mixed"  # its scaler skips a step that overflows
        if not scaled and not (norm + self.nonfinite.bounded(total, count)).isfinite():
            step = self.trainer.global_step + 1
            raise self.nonfinite.broken(step, norm=norm, total=total, count=count, examples=())
        most = None if gradient_clip_val is not None else self.settings.clip_norm
        if most is not None and norm > most:
            factor = factor * most / norm
        torch._foreach_mul_(gradients, factor)
        if gradient_clip_val is not None:
            self.clip_gradients(optimizer, gradient_clip_val, gradient_clip_algorithm)

    @override
    def on_validation_epoch_start(self) -> None:
        self._evaluation.close()
        step = self.trainer.global_step
        self._evaluation.enter_context(evaluation_rng(seed=self.settings.seed, step=step))
        self._metrics = self.task.metrics()

    on_test_epoch_start = on_validation_epoch_start

    @override
    def validation_step(self, batch: Any, batch_idx: int) -> None:
        if not isinstance(batch, HeldOutBatch):
            raise UserError(
                f"an evaluation needs batches with their rows, and found a {type(batch).__name__}: "
                "give the Trainer what as_datamodule(recipe) makes."
            )
        outputs = outputs_of(self.task, batch.batch, batch.rows)
        self.task.aggregate(self._metrics, outputs, batch.rows)

    test_step = validation_step

    @override
    def on_validation_epoch_end(self) -> None:
        """Logs the metrics, and passes the selected one to a schedule that follows it."""
        values = self._values("valid")
        if self.trainer.sanity_checking or self.trainer.state.fn != "fit":
            return
        errors = self.task.errors(self._metrics)
        self.selection.see(self.trainer.global_step, values, errors=errors)
        groups = self._rates.optimizer.param_groups
        for group, base in zip(groups, self._rates.base_lrs, strict=True):
            group["lr"] = base * self._factor(self.trainer.global_step)

    @override
    def on_test_epoch_end(self) -> None:
        self._values("test")

    def _values(self, split: str) -> dict[str, float]:
        self._evaluation.close()
        values = self.task.reduce(self._metrics)
        self.log_dict({f"{split}/{name}": float(value) for name, value in values.items()})
        return values

    @override
    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Adds the state of the task and of the selection."""
        parts = {name: part.state_dict() for name, part in self.task.parts.items()}
        own = {"selection": self.selection.state_dict(), "examples": self.examples}
        checkpoint[STATE] = {"parts": parts, **own}

    @override
    def on_load_checkpoint(self, checkpoint: Mapping[str, Any]) -> None:
        state = checkpoint[STATE]
        for name, part in self.task.parts.items():
            part.load_state_dict(state["parts"][name])
        self.selection.load_state_dict(state["selection"])
        self.examples = int(state["examples"])

    @override
    def forward(self, rows: Sequence[Row]) -> list[Any]:
        """Typed answers to rows without targets, in order."""
        return self.task.predict(rows)

    @override
    def predict_step(
        self, batch: Any, batch_idx: int, dataloader_idx: int = 0
    ) -> list[dict[str, Any]]:
        """Answers to a batch of rows from a DataLoader, as plain data."""
        return [self.task.answer_row(answer) for answer in self.task.predict(batch)]

    def save_run(self, folder: str | Path) -> Path:
        """Writes what was trained as a new run: to load, evaluate, export, serve, go on with."""
        data = getattr(self.trainer, "datamodule", None)
        if isinstance(data, RecipeData):
            place = data.training.state_dict()
            self.prepared.trainer.data.first.groups.load_state_dict(place)
        progress = Progress(
            self.trainer.global_step, self.prepared.trainer.data.epochs, self.examples
        )
        return save_run(self.prepared, Path(folder), progress, selection=self.selection)


def _refuse(settings: TrainerConfig) -> None:
    ema = "set it to null, and give Lightning's Trainer the callback EMAWeightAveraging"
    for name, value, instead in (
        ("ema", None, ema),
        ("swa_start", None, "set it to null, and give it the callback StochasticWeightAveraging"),
        (
            "pruning",
            Pruning(),
            "leave it out, or give Lightning's Trainer the callback ModelPruning",
        ),
        ("on_nonfinite", "stop", "set it to stop"),
        ("data_parallelism", "ddp", "set it to ddp"),
    ):
        if (found := getattr(settings, name)) != value:
            raise UserError(
                f"trainer.{name} is {found}, which textmill's own loop does and Lightning's does "
                f"not. To train under Lightning, {instead}."
            )
