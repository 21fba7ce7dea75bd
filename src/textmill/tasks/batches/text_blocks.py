"""Blocks of a text as batches: their rows, how many a step reads, and the state between them."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from textmill.data.block_batches import BlockBatch, Blocking
from textmill.data.mixture import Mixture
from textmill.data.store.tokens import encoded_rows, kept_fingerprint
from textmill.errors import DataError, UserError
from textmill.models import fast
from textmill.models.layers.linear import TokenScores
from textmill.models.losses import cross_entropy, projected_cross_entropy
from textmill.tasks.batches.device import at_places, real_places
from textmill.tasks.batches.row_batches import is_row, peek_first, rows_of
from textmill.tasks.task import Loss, Row, Task
from textmill.text.ragged import Ragged


def read_text(
    task: Task, data: Iterable[Any], *, train: bool, seed: int
) -> tuple[Ragged, Sequence[Row], Blocking, Mixture | None]:
    """The encoded rows of data, the rows, their blocks by the task's settings, their mixture."""
    column, length = task.config.column, task.config.block
    first, data = peek_first(data)
    if not is_row(first, (column,)):
        raise DataError(
            f"Language modeling wants rows with the text '{column}', found "
            f"{type(first).__name__}. Give rows: textmill makes the blocks."
        )
    rows, batching = rows_of(data, train=train)
    if batching.mixture is not None and not train:
        raise UserError(
            "An evaluation of a language model measures each row once, so its sources cannot be "
            "mixed: leave weights and temperature out of valid_data and test_data."
        )
    if (size := batching.batch_size) is None:
        if not isinstance(batching.max_tokens, int):
            raise UserError(
                "A language model's batches are of one size: set batch_size, the number of "
                "blocks, instead of max_tokens=auto."
            )
        size = max(1, batching.max_tokens // length)
    shuffle = train and batching.shuffle  # a measured text is read from its beginning
    blocking = Blocking(length=length, batch_size=size, shuffle=shuffle, seed=seed)
    ids = encoded_rows(task.text, rows, kept_fingerprint(data, task.text))["text"]
    return ids, rows, blocking, batching.mixture


def counted(states: Tensor, batch: BlockBatch) -> tuple[Tensor, Tensor]:
    """The states of a batch's counted targets, :math:`(N,D)`, and the targets, :math:`(N)`."""
    if batch.counted is None:
        return states.flatten(0, 1), batch.targets.flatten()
    places = real_places(batch.counted, batch.count)
    return at_places(states, places), at_places(batch.targets, places)


def token_loss(module: TokenScores, states: Tensor, targets: Tensor, *, on_cpu: bool) -> Loss:
    """The loss of targets, :math:`(N)`, by their states, :math:`(N,D)`."""
    if module.affine and fast.now().split_loss and on_cpu:
        weight, bias = module.output_weight, module.output_bias
        sums = projected_cross_entropy(module.head(states), weight, bias, targets)
    else:
        sums = cross_entropy(module.project(states), targets)
    return Loss(sums.total, torch.tensor(float(len(targets))))


class Carried:
    """The state that a model carries from batch to batch; part of what survives a crash.

    Streams are its last dimension but one. Each of many ranks carries that of its own.
    """

    def __init__(self) -> None:
        self._state: Tensor | None = None

    def into(self, batch: BlockBatch, *, like: Tensor) -> Tensor | None:
        """What is carried into a batch, where ``like`` is; None into an epoch's first."""
        if batch.begins:
            self._state = None
        return self._state if self._state is None else self._state.to(like.device)

    def keep(self, state: Tensor | None) -> None:
        """Keeps the state after a batch, without its graph.

        What is not finite becomes zero: after a step that is left out the run is to go on.
        """
        self._state = None if state is None else state.detach().nan_to_num(0.0, 0.0, 0.0)

    def state_dict(self) -> dict[str, Any]:
        return {"state": self._state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self._state = state["state"]

    def joined(self, states: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
        parts = [state["state"] for state in states if state["state"] is not None]
        if not parts:
            return {"state": None}
        size = sum(part.shape[-2] for part in parts)
        whole = parts[0].new_empty((*parts[0].shape[:-2], size, parts[0].shape[-1]))
        for rank, part in enumerate(parts):
            whole[..., rank :: len(states), :] = part
        return {"state": whole}

    def share(self, state: Mapping[str, Any], rank: int, world_size: int) -> dict[str, Any]:
        whole = state["state"]
        share = None if whole is None else whole[..., rank::world_size, :].clone()
        return {"state": share if share is not None and share.shape[-2] else None}


Sums = tuple[float, ...]
"""Sums of a row's values, and last how many targets they are of."""


class RowSums:
    """Sums over the targets of rows, until each row is whole."""

    def __init__(self) -> None:
        self._open: dict[int, Sums] = {}

    def add(self, batch: BlockBatch, *values: NDArray[np.floating]) -> dict[int, Sums]:
        """Adds a batch's values of its counted targets, :math:`(N)` each, in the order of reading.

        Returns:
            The sums of the rows that are whole now, by their place in ``batch.rows``.
        """
        if batch.begins:
            self._open = {}
        size, whole = len(batch.rows), dict[int, Sums]()
        columns = [np.bincount(batch.row_of, weights=each, minlength=size) for each in values]
        columns.append(np.bincount(batch.row_of, minlength=size))
        found = zip(batch.rows.tolist(), *(column.tolist() for column in columns), strict=True)
        for place, (row, *sums) in enumerate(found):
            both = _added(self._open.pop(row, None), tuple(sums))
            if both[-1] == batch.row_lengths[place]:
                whole[place] = both
            else:
                self._open[row] = both
        return whole

    def take_open(self) -> dict[int, Sums]:
        """The sums of rows that are not whole here, which are forgotten."""
        sums, self._open = self._open, {}
        return sums


def closed(opened: Iterable[Mapping[int, Sums]]) -> dict[int, Sums]:
    """The sums of rows, of the parts that several ranks have."""
    whole = dict[int, Sums]()
    for rows in opened:
        whole |= {row: _added(whole.get(row), sums) for row, sums in rows.items()}
    return whole


def _added(before: Sums | None, sums: Sums) -> Sums:
    return sums if before is None else tuple(a + b for a, b in zip(before, sums, strict=True))
