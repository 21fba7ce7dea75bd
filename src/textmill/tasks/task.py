"""A task: where behaviour is changed. It joins a module, a text processor, a loss and metrics.

The loop asks a task for batches, for the loss of a batch, and for its evaluation; the predictor
asks it for answers. A task holds no model settings (those are ``model.*``) and never sees the
trainer.
"""

import logging
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Sized
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cached_property
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import CheckpointError, TextmillError, UserError
from textmill.metrics.metric import Direction, Metric, RowMetric
from textmill.metrics.streaming import Mean
from textmill.tasks.pretrained_parts import begin_pretrained
from textmill.text.cells import Rows, values_of
from textmill.text.processors.text_processor import TextProcessor

LOG = logging.getLogger("textmill")

Row = Mapping[str, str]
Metrics = Mapping[str, Metric]
"""The metrics of an evaluation, by name."""
ADDED = "task.metrics"
"""Prefix of the names of metrics that a recipe adds."""


@dataclass(frozen=True)
class Loss:
    """A loss is a sum with a count, divided once by the global count of a step.

    So neither gradient accumulation nor the number of ranks changes the result.
    """

    total: Tensor
    """Differentiable sum over all targets, shape ``[]``."""
    count: Tensor
    """How many targets it sums over, shape ``[]``."""
    sums: Mapping[str, Tensor] = field(default_factory=dict)
    """Further sums over the same targets, reported divided by the count; detached, shape ``[]``."""

    @classmethod
    def of(cls, made: Any, by: Any) -> "Loss":
        """Makes a loss of what a loss component returns: the sum, and what it is divided by."""
        parts = made if isinstance(made, tuple) else (made,)
        if len(parts) != 2 or not all(isinstance(p, Tensor) and not p.ndim for p in parts):
            given = ", ".join(
                f"a tensor of shape {tuple(p.shape)}" if isinstance(p, Tensor) else f"{p!r:.40}"
                for p in parts
            )
            raise UserError(
                f"{type(by).__qualname__}.forward gives {given}; wanted two tensors of shape (): "
                "the sum of the loss over all targets, and their number."
            )
        return cls(parts[0], parts[1].detach())

    @classmethod
    def of_rows(cls, losses: Tensor, weights: Tensor | None) -> "Loss":
        """The loss of rows, each with its weight; None: all count alike. *Shape:* ``[B]`` both."""
        if weights is None:
            return cls(losses.sum(), torch.full((), len(losses), device=losses.device))
        return cls((losses * weights).sum(), weights.sum())

    def detach(self) -> "Loss":
        return Loss(self.total.detach(), self.count, self.sums)


@dataclass(frozen=True)
class Outputs:
    """The loss of one validation batch, and the answers to it."""

    loss: Loss
    answers: Mapping[int, Any] = field(default_factory=dict)
    """Answers by position in the batch, for the positions that were decoded."""

    def on_host(self) -> "Outputs":
        """The same, with a loss that another process can read."""
        loss = self.loss
        sums = {name: value.cpu() for name, value in loss.sums.items()}
        loss = replace(loss, total=loss.total.cpu(), count=loss.count.cpu(), sums=sums)
        return replace(self, loss=loss)


@runtime_checkable
class Batches(Protocol):
    """Batches to train on: one iteration is the rest of one epoch, and the position is state.

    These five members are all that a source of batches needs. Some have more: ``len`` (the batches
    of an epoch), ``details`` (notes for an evaluation, by the name of a value: how many rows do not
    count), and ``mixture`` (how many rows an epoch has of each source of data).
    """

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration is part of, from 0."""

    def __iter__(self) -> Iterator[Any]: ...

    def state_dict(self) -> dict[str, Any]:
        """The position."""

    def load_state_dict(self, state: Mapping[str, Any], /) -> None:
        """Goes to a position."""

    def examples(self, batch: Any, /) -> Rows:
        """The rows of a batch as a person reads them, with their ``row`` number where known."""


@runtime_checkable
class KnownBatches(Batches, Protocol):
    """Batches of rows that are all at hand, so that ranks can each have a part of a batch."""

    rows: Sequence[Any]
    """All of them, by their number."""

    def share(self, rank: int, world_size: int, /, *, fill: bool = False) -> Batches:
        """The same batches, with the rows of one rank; a batch of which it has none is None.

        With ``fill`` that is a :class:`~textmill.data.batching.Filler`.
        """


@runtime_checkable
class HasRow(Protocol):
    """An answer that can be written down."""

    def row(self) -> Mapping[str, Any]:
        """The answer as plain data."""


class AnsweredConfig(BaseConfig):
    """Settings of tasks whose evaluation answers rows."""

    metrics: tuple[RowMetric.Config, ...] = ()
    """Metrics beside the task's own, as ``[rouge, {type: bleu, tokenize: char}]``: names that
    ``textmill list metrics`` shows, or a class of your own. A value with the name of one of the
    task's replaces it."""


class Task(Component):
    """Base of all tasks: a component whose ``Config`` holds the task's own settings."""

    config: Any = None
    module: nn.Module
    text: TextProcessor
    notes: Sequence[str] = ()
    """Notes on the data that was read."""
    _reading: str = ""
    _reused: tuple[type[Any], dict[tuple[int, bool, int], tuple[Batches, Any]]] | None = None

    def note(self, text: str, level: int = logging.WARNING) -> None:
        """Notes something about the data that is being read, in the log and in the run's notes."""
        message = f"{self._reading}: {text}" if self._reading else text
        self.notes = [*self.notes, message]
        LOG.log(level, message)

    @property
    def parts(self) -> dict[str, Any]:
        """State that a task keeps from step to step, by the name it is saved under.

        Each has ``state_dict`` and ``load_state_dict``. The module is not among them.
        """
        return {}

    def rolled_back(self) -> None:
        """Called after a rollback: the parts are restored, but the data goes on where it was."""
        return

    def initialize(self) -> list[str]:
        """Called once, on a fresh start only; returns lines that say what it did.

        Weights of pretrained encoders, and files of word vectors that embeddings name, are read.
        """
        return begin_pretrained(self.module, self.text)

    @abstractmethod
    def batches(self, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        """Makes batches of what a data ingredient gives: rows, or ready batches."""

    def batches_of(self, name: str, data: Iterable[Any], *, train: bool, seed: int) -> Batches:
        """The :meth:`batches` of some data; notes and errors are prefixed with the data's name."""
        key = id(data), train, seed
        kind, made = self._reused or (None, {})
        if key in made:
            batches, start = made[key]
            batches.load_state_dict(start)
            return batches
        self._reading = name
        try:
            batches = self.batches(data, train=train, seed=seed)
        except TextmillError as error:
            error.add_note(f"in {name}")
            raise
        finally:
            self._reading = ""
        if type(batches) is kind:
            made[key] = batches, batches.state_dict()
        return batches

    def reuse_batches(self, kind: type[Batches]) -> None:
        """From now on :meth:`batches_of` makes batches of a kind once for the same data.

        It gives the same ones again, at their start. The data must not be let go of meanwhile.
        """
        self._reused = (kind, {})

    def batch_size(self, batch: Any) -> int:
        """Rows of a batch: its ``len``; of a dictionary or tuple, that of its first tensor."""
        if isinstance(batch, Sized) and not isinstance(batch, Mapping | tuple):
            return len(batch)
        parts = batch.values() if isinstance(batch, Mapping) else batch
        parts = parts if isinstance(parts, Iterable) else ()
        first = next((p for p in parts if isinstance(p, Tensor) and p.ndim), None)
        if first is None:
            raise UserError(
                f"The number of rows of a {type(batch).__name__} is not known: it has no len and "
                f"holds no tensor. Override {type(self).__name__}.batch_size(batch)."
            )
        return len(first)

    @abstractmethod
    def training_step(self, batch: Any, examples: Rows = ()) -> Loss:
        """The loss of one batch, with its graph."""

    @abstractmethod
    def validation_step(self, batch: Any, examples: Rows) -> Outputs:
        """The loss of one batch and the answers to it; called without gradients."""

    def metrics(self) -> dict[str, Metric]:
        """Fresh metrics for one evaluation: of losses, of answers, and those that are added."""
        return {**self.loss_metrics(), **self.answer_metrics(), **self.added_metrics()}

    def added_metrics(self) -> dict[str, RowMetric]:
        """Fresh metrics of ``task.metrics``; a task with a Config of its own may have none."""
        chosen = self.config.metrics if isinstance(self.config, AnsweredConfig) else ()
        added = {f"{ADDED}[{number}]": made.build() for number, made in enumerate(chosen)}
        for name, metric in added.items():
            if missing := [c for c in metric.columns if c not in self.text.columns]:
                listed = ", ".join(self.text.columns)
                raise UserError(
                    f"{name} ({type(metric).__name__}) reads the column '{missing[0]}', which the "
                    f"task does not read: {listed}. Name another in the metric's settings."
                )
        return added

    def loss_metrics(self) -> dict[str, Metric]:
        """Fresh metrics of losses: ``loss``, and what a task that overrides it adds."""
        return {"loss": Mean("loss")}

    def answer_metrics(self) -> dict[str, Metric]:
        """Fresh metrics of answers; by default none."""
        return {}

    def aggregate(self, metrics: Metrics, outputs: Outputs, examples: Rows) -> None:
        """Adds one batch to the metrics: its loss, and its answers by :meth:`measure`."""
        metrics["loss"].update(outputs.loss.total, outputs.loss.count)
        if outputs.answers:
            rows = [examples[position] for position in outputs.answers]
            self.add_answers(metrics, list(outputs.answers.values()), rows)

    def measured(self, answer: Callable[[Rows], Sequence[Any]], rows: Rows) -> Metrics:
        """Fresh metrics (without those of losses) of a program's answers to rows with targets."""
        metrics: Metrics = {**self.answer_metrics(), **self.added_metrics()}
        self.add_answers(metrics, answer(rows), rows)
        return metrics

    def add_answers(self, metrics: Metrics, answers: Sequence[Any], rows: Rows) -> None:
        """Adds answers, and the rows that they answer, each as often as its weight says."""
        column = getattr(getattr(self, "text", None), "weight", None)
        if column is None:
            self._add_alike(metrics, answers, rows)
            return
        weights = column.encode(values_of(rows, column.name)).values
        for weight in np.unique(weights[weights > 0]).tolist():
            for metric in metrics.values():
                metric.weight = int(weight) if weight.is_integer() else Fraction(weight)
            found = np.flatnonzero(weights == weight).tolist()
            self._add_alike(metrics, [answers[i] for i in found], [rows[i] for i in found])
        for metric in metrics.values():
            metric.weight = 1

    def _add_alike(self, metrics: Metrics, answers: Sequence[Any], rows: Rows) -> None:
        """Adds rows of one weight: by :meth:`measure`, and as rows."""
        self.measure(metrics, answers, rows)
        added = [m for n, m in metrics.items() if n.startswith(ADDED) and isinstance(m, RowMetric)]
        if added:
            answered = zip(rows, answers, strict=True)
            shown = [{**row, **self.answer_row(answer)} for row, answer in answered]
            for metric in added:
                metric.measure(shown)

    def measure(self, metrics: Metrics, answers: Sequence[Any], rows: Rows) -> None:
        """Adds answers, and the rows that they answer, to :meth:`answer_metrics`.

        A task that names such metrics must have this method.
        """
        if names := ", ".join(self.answer_metrics()):
            raise UserError(
                f"{type(self).__name__} names metrics of its answers ({names}), but has no method "
                "measure(metrics, answers, rows), which adds answers to them. Write it, or leave "
                "answer_metrics out."
            )

    def reduce(self, metrics: Metrics) -> dict[str, float]:
        """The values of an evaluation, by name."""
        return {
            name: value for metric in metrics.values() for name, value in metric.compute().items()
        }

    def errors(self, metrics: Metrics) -> dict[str, float]:
        """The standard errors of the values of an evaluation, by name, where they are known.

        They are those of the metrics: a task whose :meth:`reduce` gives another value under the
        name of one overrides this, too.
        """
        return {
            name: error for metric in metrics.values() for name, error in metric.errors().items()
        }

    @property
    def selected(self) -> str:
        """The value that ``trainer.selection.metric=auto`` chooses by; by default the loss."""
        return "loss"

    def directions(self) -> dict[str, Direction]:
        """For each value of an evaluation that a metric gives, which way is better."""
        metrics = self.metrics().values()
        return {name: way for metric in metrics for name, way in metric.directions().items()}

    def remarks(self, metrics: Metrics) -> list[str]:
        """Remarks on an evaluation, each with what to do about it; often none."""
        return []

    @abstractmethod
    def predict(self, rows: Sequence[Row]) -> list[Any]:
        """Typed answers to rows without targets, in order."""

    def asked(self, row: Row) -> Row:
        """A row to predict, made of a row of training data: by default its input columns."""
        return {name: row[name] for name in self.text.input_columns}

    def check(self, row: Row) -> None:
        """Refuses a row that cannot be answered, with a DataError that says why."""
        return

    @property
    def predict_checks(self) -> bool:
        """Whether :meth:`predict` refuses all that :meth:`check` does, which then is not called."""
        return type(self).check is Task.check

    @property
    def answer_class(self) -> type[HasRow] | None:
        """The class of answers; a server describes answers by the annotations of its ``row``."""
        return self.text.answer_class

    def answer_row(self, answer: Any) -> dict[str, Any]:
        """An answer as plain data, for a predictions file: what its method ``row`` gives."""
        if not isinstance(answer, HasRow):
            raise UserError(
                f"{type(self).__name__} answers with a {type(answer).__name__}, which has no "
                "method row(): write one, that gives plain data, or override answer_row(answer)."
            )
        return dict(answer.row())

    def use_text(self, text: TextProcessor) -> None:
        """Takes the text processor that a checkpoint holds in place of its own.

        One of another kind, or of other columns, is refused with a CheckpointError.
        """
        if type(text) is not type(self.text):
            raise CheckpointError(
                f"the saved text processor is a {type(text).__name__}, but {type(self).__name__} "
                f"works with a {type(self.text).__name__}"
            )
        if difference := text.difference(self.text):
            raise CheckpointError(f"the saved text processor {difference}")
        self.text = text

    def parameter_groups(self) -> list[dict[str, Any]]:
        """Parameters for the optimizer; biases, norms and other vectors are not decayed."""
        trained = [p for p in self.module.parameters() if p.requires_grad]
        matrices = [p for p in trained if p.ndim > 1]
        vectors = [p for p in trained if p.ndim <= 1]
        groups: list[dict[str, Any]] = [
            {"params": matrices},
            {"params": vectors, "weight_decay": 0.0},
        ]
        return [group for group in groups if group["params"]]

    @property
    def device(self) -> torch.device:
        """Where the module's parameters are; the CPU for one without any."""
        first = next(self.module.parameters(), None)
        return torch.device("cpu") if first is None else first.device


class BatchRows(Sequence[Mapping[str, Any]]):
    """The rows of one batch, read when they are first looked at."""

    def __init__(self, batches: Batches, batch: Any) -> None:
        self.batches, self.batch = batches, batch

    @cached_property
    def rows(self) -> Rows:
        return self.batches.examples(self.batch)

    @override
    def __getitem__(self, index: Any) -> Any:
        return self.rows[index]

    @override
    def __len__(self) -> int:
        return len(self.rows)


def loss_of(task: Task, batch: Any, examples: Rows = ()) -> Loss:
    """The result of :meth:`Task.training_step`, checked."""
    loss: Any = task.training_step(batch, examples)
    if not isinstance(loss, Loss):
        raise UserError(
            f"{type(task).__name__}.training_step returned a {type(loss).__name__}; wanted a "
            "textmill.tasks.Loss(total, count): the loss summed over its targets, and their number."
        )
    return loss


def outputs_of(task: Task, batch: Any, examples: Rows) -> Outputs:
    """The result of :meth:`Task.validation_step`, checked."""
    outputs: Any = task.validation_step(batch, examples)
    if not isinstance(outputs, Outputs):
        raise UserError(
            f"{type(task).__name__}.validation_step returned a {type(outputs).__name__}; wanted "
            "textmill.tasks.Outputs(loss, answers): the Loss of the batch, and its answers by "
            "position."
        )
    return outputs
