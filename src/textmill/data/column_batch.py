"""The batch of every task whose rows have typed columns."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from textmill.errors import DataError
from textmill.text.columns.column import Column, padded_columns
from textmill.text.ragged import Ragged


@dataclass(frozen=True, eq=False, kw_only=True)
class ColumnBatch:
    """Padded columns by their role; ``batch["text"]`` is one.

    Example:
        >>> batch = ColumnBatch(
        ...     columns={"text": torch.tensor([[5, 3], [6, 0]]), "label": torch.tensor([1, 0])},
        ...     lengths={"text": torch.tensor([2, 1])},
        ... )
        >>> len(batch), batch["label"].tolist(), batch.mask("text").tolist()
        (2, [1, 0], [[True, True], [True, False]])
    """

    columns: Mapping[str, Tensor]
    """*Shape:* ``[B, L]``, or ``[B]`` where each row has one number, or ``[B, L, W]`` where each
    place of a row has several; int64 or float32."""
    lengths: Mapping[str, Tensor]
    """*Shape:* ``[B]``, int64; places of each row without padding, for roles that have padding."""
    rows: NDArray[np.int64] | None = None
    """*Shape:* ``[B]``; the index of each row in its data set, on the host."""
    counts: Mapping[str, int] = field(default_factory=dict)
    """Places without padding by role; counted when the batch leaves the host."""

    def __len__(self) -> int:
        return len(next(iter(self.columns.values()), ()))

    def __getitem__(self, role: str) -> Tensor:
        try:
            return self.columns[role]
        except KeyError:
            has = ", ".join(self.columns) or "none"
            raise DataError(f"This batch has no column '{role}'; it has {has}.") from None

    def __contains__(self, role: str) -> bool:
        return role in self.columns

    def mask(self, role: str) -> Tensor:
        """True at what is no padding. *Shape:* ``[B, L]``."""
        column = self[role]
        return torch.arange(column.shape[1], device=column.device) < self.lengths[role][:, None]

    def count(self, role: str) -> int:
        return self.counts[role] if role in self.counts else int(self.lengths[role].sum())

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "ColumnBatch":
        """The batch with its tensors on ``device``; ``rows`` stays on the host."""
        columns, lengths = (
            {name: value.to(device, non_blocking=non_blocking) for name, value in part.items()}
            for part in (self.columns, self.lengths)
        )
        counts = self.counts
        if torch.device(device).type != "cpu" and not counts:  # counting there would wait for it
            counts = {role: self.count(role) for role in self.lengths}
        return replace(self, columns=columns, lengths=lengths, counts=counts)

    def part(self, first: int, step: int) -> "ColumnBatch":
        """Every ``step``-th of the rows, from the ``first`` on, counted from 0."""
        columns, lengths = (
            {name: value[first::step] for name, value in part.items()}
            for part in (self.columns, self.lengths)
        )
        rows = None if self.rows is None else self.rows[first::step]
        return ColumnBatch(columns=columns, lengths=lengths, rows=rows)


def collate_columns(
    encoded: Mapping[str, Ragged], kinds: Mapping[str, Column], indices: ArrayLike
) -> ColumnBatch:
    """Cuts a batch out of encoded columns."""
    rows = np.asarray(indices, dtype=np.int64)
    columns, lengths = (
        {role: torch.from_numpy(array) for role, array in part.items()}
        for part in padded_columns(encoded, kinds, rows)
    )
    return ColumnBatch(columns=columns, lengths=lengths, rows=rows)
