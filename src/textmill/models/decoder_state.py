"""What decoding keeps between steps: the encoder's memory and the key-value cache."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor

from textmill.errors import UserError

FIRST_CAPACITY: Final = 32
"""Positions a cache starts with; it doubles when full."""


@dataclass(frozen=True)
class DecoderMemory:
    """An encoder's output."""

    states: Tensor
    """*Shape:* :math:`(B,S,D)`."""
    mask: Tensor | None
    """True at real positions; None if all are. *Shape:* :math:`(B,1,1,S)`."""

    def select(self, indices: Tensor) -> "DecoderMemory":
        """The rows of these indices, in their order; an index may repeat."""
        mask = None if self.mask is None else self.mask.index_select(0, indices)
        return DecoderMemory(self.states.index_select(0, indices), mask)


class DecoderState:
    """A decoder's state after some tokens of each row: keys and values of them and of the memory.

    Args:
        memory_keys_values: The memory, projected by each layer. *Shape:* each :math:`(2,B,H,S,K)`.
        memory_mask: As in :class:`DecoderMemory`.
        heads: Heads of the keys and values of self-attention, each of ``head_dim`` features; None:
            as the memory's.
    """

    def __init__(
        self,
        memory_keys_values: Sequence[Tensor],
        memory_mask: Tensor | None,
        *,
        heads: int | None = None,
        head_dim: int | None = None,
    ) -> None:
        self.memory_keys_values, self.memory_mask = [*memory_keys_values], memory_mask
        self.position = 0
        """Number of tokens read."""
        layers, (_, rows, *sizes) = len(memory_keys_values), memory_keys_values[0].shape
        heads, head_dim = heads or sizes[0], head_dim or sizes[2]
        # One tensor for all layers: reordering rows is one copy instead of two a layer.
        shape = (layers, 2, rows, heads, FIRST_CAPACITY, head_dim)
        self._cache = memory_keys_values[0].new_zeros(shape)

    def __len__(self) -> int:
        return self._cache.shape[2]

    def self_cache(self, layer: int) -> Tensor:
        """A layer's keys and values, with room for one more. *Shape:* :math:`(2,B,H,T,K)`."""
        if self.position == self._cache.shape[4]:
            self._cache = torch.cat([self._cache, torch.zeros_like(self._cache)], dim=4)
        return self._cache[layer]

    def repeat(self, times: int) -> None:
        """Makes each row a group of ``times`` equal rows; the rows of a group share its memory."""
        self._cache = self._cache.repeat_interleave(times, dim=2)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        """Keeps the rows of these indices, in their order; an index may repeat.

        After :meth:`repeat`, ``groups`` are those that the rows are of, in their order; None: all,
        as they were. The memory is by group: rows change places in a group without copying it.
        """
        used = self._cache[..., : self.position, :]
        cache = self._cache.new_empty((*used.shape[:2], len(indices), *self._cache.shape[3:]))
        torch.index_select(used, 2, indices, out=cache[..., : self.position, :])
        rows, self._cache = len(self), cache
        if groups is None and rows == self.memory_keys_values[0].shape[1]:
            groups = indices
        if groups is not None:
            self.memory_keys_values = [kv.index_select(1, groups) for kv in self.memory_keys_values]
            if self.memory_mask is not None:
                self.memory_mask = self.memory_mask.index_select(0, groups)


def length_mask(ids: Tensor, lengths: Tensor | None) -> Tensor | None:
    """True at real tokens; None if all are.

    *Shape:* :math:`(B,S)` and :math:`(B)`, None: all are real; to :math:`(B,1,1,S)`.
    """
    if lengths is None:
        return None
    if lengths.shape != ids.shape[:1]:
        raise UserError(
            "source_lengths must have one length a row of source, "
            f"but its shape is {tuple(lengths.shape)} and source's {tuple(ids.shape)}."
        )
    # Attention without a mask is faster; asking is free on CPU, and would wait for the queue
    # elsewhere.
    if lengths.device.type == "cpu" and int(lengths.min()) == ids.shape[1]:
        return None
    return (torch.arange(ids.shape[1], device=ids.device) < lengths[:, None])[:, None, None]
