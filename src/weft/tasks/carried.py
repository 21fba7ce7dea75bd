"""What a task keeps from batch to batch: a recurrent state, and rows that are not whole yet."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray
from torch import Tensor

from weft.data.blocks import BlockBatch

__all__ = ["Carried", "RowSums"]


class Carried:
    """The state that a model carries from batch to batch; part of what survives a crash."""

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
        """The state; nothing before the first batch."""
        return {"state": self._state}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes on with a saved state."""
        self._state = state["state"]


class RowSums:
    """Sums over the targets of rows, until each row is whole."""

    def __init__(self) -> None:
        self._open: dict[int, tuple[float, int]] = {}

    def add(self, batch: BlockBatch, values: NDArray[np.floating]) -> dict[int, tuple[float, int]]:
        """Adds a batch's values of its counted targets.

        Args:
            batch: The batch.
            values: In the order of reading it. *Shape:* ``[N]``.

        Returns:
            Of the rows that are whole now, by their place in ``batch.rows``: sum and count.
        """
        if batch.begins:
            self._open = {}
        sums = np.bincount(batch.row_of, weights=values, minlength=len(batch.rows))
        counts = np.bincount(batch.row_of, minlength=len(batch.rows))
        whole = {}
        for place, row in enumerate(batch.rows.tolist()):
            total, count = self._open.pop(row, (0.0, 0))
            found = total + float(sums[place]), count + int(counts[place])
            if found[1] == batch.row_lengths[place]:
                whole[place] = found
            else:
                self._open[row] = found
        return whole
