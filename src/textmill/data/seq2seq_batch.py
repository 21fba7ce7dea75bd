"""The batch of every task from a source sequence to a target sequence."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from textmill.errors import DataError
from textmill.text.columns.column import Column, padded_columns
from textmill.text.ragged import Ragged

TENSORS = ("source", "source_lengths", "target", "target_lengths", "weights")


@dataclass(frozen=True, eq=False, kw_only=True)
class Seq2SeqBatch:
    """Padded sources and, except in prediction, padded targets.

    The decoder reads ``target_input`` and is scored on ``labels``.

    Example:
        >>> batch = Seq2SeqBatch.from_padded(
        ...     torch.tensor([[5, 3, 0]]), torch.tensor([[2, 7, 3]]), pad_idx=0
        ... )
        >>> batch.target_input.tolist(), batch.labels.tolist(), batch.num_tokens, batch.padding
        ([[2, 7]], [[7, 3]], 4, 0.2)
    """

    source: Tensor
    """*Shape:* ``[B, S]``, int64."""
    source_lengths: Tensor
    """*Shape:* ``[B]``, int64; ids of each source that are not padding."""
    target: Tensor | None = None
    """*Shape:* ``[B, T]``, int64, from the first id (bos) to the last (eos)."""
    target_lengths: Tensor | None = None
    """*Shape:* ``[B]``, int64; labels of each target: one fewer than its ids."""
    rows: NDArray[np.int64] | None = None
    """*Shape:* ``[B]``; the index of each row in its data set, on the host."""
    num_tokens: int = field(default=-1)
    """Source ids and labels that are not padding; counted from the lengths if not given."""
    num_labels: int = field(default=-1)
    """Labels that are not padding; counted likewise."""
    beside: Mapping[str, Tensor] = field(default_factory=dict)
    """What the module gets of each source beside its ids, by name."""
    weights: Tensor | None = None
    """*Shape:* ``[B]``; how often each row counts; None: once."""

    def __post_init__(self) -> None:
        if (self.target is None) != (self.target_lengths is None):
            raise DataError("A Seq2SeqBatch has both target and target_lengths, or neither.")
        if self.target is not None and len(self.target) != len(self.source):
            raise DataError(
                f"A Seq2SeqBatch needs one target for each source, but has {len(self.source)} "
                "sources and "
                f"{len(self.target)} targets."
            )
        # Counted once, here: on a GPU counting waits for all work before it.
        if self.num_labels < 0:
            labels = 0 if self.target_lengths is None else int(self.target_lengths.sum())
            object.__setattr__(self, "num_labels", labels)
        if self.num_tokens < 0:
            count = int(self.source_lengths.sum()) + self.num_labels
            object.__setattr__(self, "num_tokens", count)

    @classmethod
    def from_padded(
        cls, source: Tensor, target: Tensor | None = None, *, pad_idx: int
    ) -> "Seq2SeqBatch":
        """Makes a batch of padded tensors; the lengths are counted from the padding."""
        return cls(
            source=source,
            source_lengths=(source != pad_idx).sum(dim=-1),
            target=target,
            target_lengths=None if target is None else (target[:, 1:] != pad_idx).sum(dim=-1),
        )

    def __len__(self) -> int:
        return len(self.source)

    @property
    def target_input(self) -> Tensor:
        """*Shape:* ``[B, T - 1]``; what the decoder reads: targets without the last position."""
        return self._target()[:, :-1]

    @property
    def labels(self) -> Tensor:
        """*Shape:* ``[B, T - 1]``; what it is to say next: targets without the first one."""
        return self._target()[:, 1:]

    @property
    def padding(self) -> float:
        """Share of source and label cells that are padding, from 0 to 1."""
        cells = self.source.numel() + (0 if self.target is None else self.labels.numel())
        return (cells - self.num_tokens) / cells if cells else 0.0

    def to(self, device: torch.device | str, *, non_blocking: bool = False) -> "Seq2SeqBatch":
        """The batch with its tensors on ``device``; ``rows`` stays on the host."""
        moved = {
            name: None if value is None else value.to(device, non_blocking=non_blocking)
            for name in TENSORS
            for value in (getattr(self, name),)
        }
        beside = {n: t.to(device, non_blocking=non_blocking) for n, t in self.beside.items()}
        return replace(self, beside=beside, **moved)  # type: ignore[arg-type]  # only tensors are moved

    def part(self, first: int, step: int) -> "Seq2SeqBatch":
        """Every ``step``-th of the rows, from the ``first`` on, counted from 0."""
        parts = {
            name: None if value is None else value[first::step]
            for name in (*TENSORS, "rows")
            for value in (getattr(self, name),)
        }
        beside = {name: each[first::step] for name, each in self.beside.items()}
        return replace(self, **parts, beside=beside, num_tokens=-1, num_labels=-1)  # type: ignore[arg-type]

    def _target(self) -> Tensor:
        if self.target is None:
            raise DataError("This batch has no target: it was made for prediction.")
        return self.target


def collate_seq2seq(
    columns: Mapping[str, Ragged],
    indices: ArrayLike,
    pad_idx: int,
    beside: Mapping[str, Column] = {},
) -> Seq2SeqBatch:
    """Cuts a batch out of the encoded columns ``source``, ``target`` if it is there, and others."""
    rows = np.asarray(indices, dtype=np.int64)
    source, target = columns["source"], columns.get("target")
    _, lengths = source.bounds(rows)
    num_tokens, num_labels = int(lengths.sum()), 0
    others = padded_columns({r: columns[r] for r in beside if r in columns}, beside, rows)[0]
    tensors = {role: torch.from_numpy(array) for role, array in others.items()}
    label_lengths = None
    if target is not None:
        label_lengths = np.maximum(target.bounds(rows)[1] - 1, 0)
        num_labels = int(label_lengths.sum())
    return Seq2SeqBatch(
        source=torch.from_numpy(source.padded(rows, pad_idx)),
        source_lengths=torch.from_numpy(lengths),
        target=None if target is None else torch.from_numpy(target.padded(rows, pad_idx)),
        target_lengths=None if label_lengths is None else torch.from_numpy(label_lengths),
        rows=rows,
        weights=tensors.pop("weight", None),
        beside=tensors,
        num_tokens=num_tokens + num_labels,
        num_labels=num_labels,
    )
