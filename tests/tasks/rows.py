"""Rows to give a task, and training on them until it knows them."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import torch

from textmill.data.batching import Batching
from textmill.tasks import evaluate

Row = Mapping[str, Any]


class Rows:
    """Rows with a batching of their own; they are not shuffled."""

    def __init__(self, rows: Sequence[Row], **batching: Any) -> None:
        self._rows, self.batching = rows, Batching(**{"shuffle": False, **batching})

    def rows(self) -> Sequence[Row]:
        return self._rows

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)


def data_of(default: Sequence[Row], **usual: Any) -> Callable[..., Rows]:
    """What makes data of these rows, where no others are given, in the usual batches."""

    def data(rows: Sequence[Row] = default, **batching: Any) -> Rows:
        return Rows(rows, **{**usual, **batching})

    return data


def evaluated(task: Any, data: Any) -> Any:
    return evaluate(task, task.batches(data, train=False, seed=1))


def learn(task: Any, batches: Any, *, epochs: int, lr: float) -> None:
    """Trains all parameters by Adam."""
    optimizer = torch.optim.Adam(task.module.parameters(), lr=lr)
    for _ in range(epochs):
        for batch in batches:
            loss = task.training_step(batch)
            (loss.total / loss.count).backward()
            optimizer.step()
            optimizer.zero_grad()
