"""Evaluation and prediction: every batch once, without gradients, by the module as it stands."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, TypeVar

import torch
from torch import nn

from weft.metrics.metric import Direction
from weft.tasks.task import Batches, DetailedBatches, Task, outputs_of

__all__ = ["Evaluation", "answer_batches", "evaluate"]

A = TypeVar("A")
B = TypeVar("B")


@dataclass(frozen=True)
class Evaluation:
    """The values of one evaluation, and the rows that were answered."""

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


def evaluate(
    task: Task, batches: Batches, *, poll: Callable[[], None] = lambda: None
) -> Evaluation:
    """Evaluates the task's module as it stands.

    Returns:
        The values by name, with the answered rows in the order of the data.
    """
    metrics = task.metrics()
    rows: list[dict[str, Any]] = []
    with _inference(task.module):
        for batch in batches:
            poll()
            examples = batches.examples(batch)
            outputs = outputs_of(task, batch, examples)
            task.aggregate(metrics, outputs, examples)
            answered = sorted(outputs.answers.items())
            rows += [{**examples[i], **task.answer_row(answer)} for i, answer in answered]
    rows.sort(key=lambda row: row.get("row", 0))
    directions = {
        name: way for metric in metrics.values() for name, way in metric.directions().items()
    }
    details = {name: text for metric in metrics.values() for name, text in metric.details().items()}
    details |= batches.details if isinstance(batches, DetailedBatches) else {}
    remarks = tuple(task.remarks(metrics))
    return Evaluation(task.reduce(metrics), directions, details, rows, remarks)


def answer_batches(
    module: nn.Module, batches: Iterable[B], answer: Callable[[B], Iterable[tuple[int, A]]]
) -> list[A]:
    """Answers to batches of rows, in the order of the rows: what every prediction comes down to.

    Args:
        module: Computes them; it is put in evaluation mode and back.
        batches: Each row is in one of them.
        answer: Gives the number of each row of a batch with its answer.

    Example:
        >>> answer_batches(nn.Identity(), [[2, 0], [1]], lambda batch: [(i, -i) for i in batch])
        [0, -1, -2]
    """
    found: dict[int, A] = {}
    with _inference(module):
        for batch in batches:
            found.update(answer(batch))
    return [found[row] for row in range(len(found))]


@contextmanager
def _inference(module: nn.Module) -> Iterator[None]:
    was_training = module.training
    # To set the mode of every part takes as long as a small model does: only what trains is told.
    if any(part.training for part in module.modules()):
        module.eval()
    try:
        with torch.inference_mode():
            yield
    finally:
        if was_training:
            module.train()
