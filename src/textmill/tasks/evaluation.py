"""Evaluation and prediction: every batch once, without gradients, by the module as it stands."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any, Protocol, runtime_checkable

import torch
from torch import nn
from typing_extensions import override

from textmill.metrics.metric import Direction
from textmill.metrics.tables import format_value, is_of_label, labels_table, values_table
from textmill.runtime.ranks import Ranks
from textmill.tasks.task import Batches, KnownBatches, Metrics, Outputs, Task, outputs_of
from textmill.text.cells import Rows


@dataclass(frozen=True, repr=False)
class Evaluation:
    """The values of one evaluation, and the rows that were answered.

    Shown, it is a table of the values, and one of those of each label.
    """

    values: Mapping[str, float]
    """By name; every value of the task's metrics."""
    directions: Mapping[str, Direction]
    """For each value ``higher`` or ``lower``: which is better."""
    details: Mapping[str, str]
    """How a value was computed, where that needs saying: sacreBLEU's signatures, rows left out."""
    rows: list[dict[str, Any]]
    """One plain dictionary per answered row, in the order of the data."""
    remarks: tuple[str, ...] = ()
    """What a person should know of it, and what to do about it."""
    errors: Mapping[str, float] = field(default_factory=dict)
    """The standard errors of values, where a metric knows them."""

    @override
    def __repr__(self) -> str:
        errors = {
            name: f"± {format_value(name, value)}" for name, value in self.errors.items() if value
        }
        whole = {name: value for name, value in self.values.items() if not is_of_label(name)}
        tables = [values_table(whole, details=errors), labels_table(self.values)]
        return "\n\n".join([f"{len(self.rows):,} rows", *filter(None, tables)])


@runtime_checkable
class PartsOfRows(Protocol):
    """A task whose rows may be spread over several ranks, which exchange their parts."""

    def unfinished(self) -> Any:
        """The parts of rows that this rank has at an evaluation's end; it forgets them."""

    def finished(self, parts: Sequence[Any]) -> Mapping[int, Any]:
        """The answers by the row's number, joined from the parts of all ranks."""


def evaluate(
    task: Task,
    batches: Batches,
    *,
    poll: Callable[[], None] = lambda: None,
    ranks: Ranks | None = None,
) -> Evaluation:
    """Evaluates the task's module as it stands.

    The values are those of all ranks; the answered rows, in the order of the data, are on the
    first alone.
    """
    metrics = task.metrics()
    together = ranks is not None and ranks.size > 1
    rows: list[dict[str, Any]] = []
    share: list[tuple[Outputs, Rows] | None] = []
    with inference(task.module):
        for batch in batches:
            poll()
            measured = None
            if batch is not None:
                examples = batches.examples(batch)
                measured = outputs_of(task, batch, examples), examples
            if together:
                share.append(measured)
            elif measured:
                rows += _added(task, metrics, *measured)
    if ranks is None or not together:
        return _evaluation(task, batches, metrics, rows)
    own = [measured and (measured[0].on_host(), measured[1]) for measured in share]
    unfinished = task.unfinished() if isinstance(task, PartsOfRows) else None
    shares = ranks.gather_to_main((own, unfinished))
    whole = _of_all(task, batches, shares) if shares else None
    # The others have the values, which decide how the run goes on, but no rows.
    shared = ranks.gather(whole and replace(whole, rows=[]))[0]
    evaluation = whole or shared
    assert evaluation is not None, "rank 0 has it"
    return evaluation


def _added(task: Task, metrics: Metrics, outputs: Outputs, examples: Rows) -> list[dict[str, Any]]:
    """Adds one batch to the metrics; gives its answered rows."""
    task.aggregate(metrics, outputs, examples)
    answered = sorted(outputs.answers.items())
    return [{**examples[i], **task.answer_row(answer)} for i, answer in answered]


def _of_all(task: Task, batches: Batches, shares: Sequence[tuple[list[Any], Any]]) -> Evaluation:
    metrics = task.metrics()
    rows: list[dict[str, Any]] = []
    for batch in zip(*(share for share, _ in shares), strict=True):
        for measured in filter(None, batch):
            rows += _added(task, metrics, *measured)
    if isinstance(task, PartsOfRows):
        rows += _answered_together(task, batches, metrics, [parts for _, parts in shares])
    return _evaluation(task, batches, metrics, rows)


def _answered_together(
    task: Task, batches: Batches, metrics: Metrics, parts: Sequence[Any]
) -> list[dict[str, Any]]:
    """Adds the rows that no rank has whole; gives them with their answers."""
    assert isinstance(task, PartsOfRows)
    answers = dict(sorted(task.finished(parts).items()))
    if not answers:
        return []
    assert isinstance(batches, KnownBatches), "what has parts of rows has them at hand"
    examples = [{"row": number, **batches.rows[number]} for number in answers]
    task.add_answers(metrics, list(answers.values()), examples)
    answered = zip(examples, answers.values(), strict=True)
    return [{**example, **task.answer_row(answer)} for example, answer in answered]


def _evaluation(
    task: Task, batches: Batches, metrics: Metrics, rows: list[dict[str, Any]]
) -> Evaluation:
    rows.sort(key=lambda row: row.get("row", 0))
    directions = {
        name: way for metric in metrics.values() for name, way in metric.directions().items()
    }
    details = {name: text for metric in metrics.values() for name, text in metric.details().items()}
    details |= getattr(batches, "details", {})
    remarks = tuple(task.remarks(metrics))
    errors = task.errors(metrics)
    return Evaluation(task.reduce(metrics), directions, details, rows, remarks, errors)


@contextmanager
def inference(module: nn.Module) -> Iterator[None]:
    """A module answers without dropout and without gradients while it is open."""
    was_training = module.training
    # To set the mode of every part takes as long as a small model does: only where a part trains.
    if any(part.training for part in module.modules()):
        module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if was_training:
            module.train()
