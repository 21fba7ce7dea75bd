"""Keys and values that are written once: beams are told apart by a mask, not by moving them.

A beam search orders its beams anew at each step. To move their keys and values would copy the whole
cache each time. Here all beams of a source write to slots of one row of the cache, where they stay;
each beam has a mask of the slots that are its own past, and only that mask, which all layers and
heads share, is ordered anew. A beam then attends to the slots of all beams of its source, those of
the others with weight 0: more multiplications, but in one product a head instead of one a beam.
"""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor
from torch.nn import functional as F

LEAST_SLOTS: Final = 16
"""Attention over fewer slots takes as many, the rest masked: torch's softmax and batched product
leave their vector paths under it (32 rows of 4 heads: 54 us over 8 slots, 18 over 16)."""
FIRST_STEPS: Final = 32
"""Steps that a cache has room for at first; it doubles when full."""


class SlotCache:
    """Keys and values of a decoder's self-attention and of the memory, with their masks.

    The memory's are given for each layer, :math:`(2,G,H,S,K)`, and a mask that is True at its real
    positions, :math:`(G,1,1,S)`, None if all are; ``heads`` of so many ``features`` are those of
    self-attention.
    """

    def __init__(
        self, memory: Sequence[Tensor], memory_mask: Tensor | None, *, heads: int, features: int
    ) -> None:
        first = memory[0]
        self.groups, length = first.shape[1], first.shape[3]
        self.heads, self.features = heads, features
        self.beams = 1
        self.position = 0
        """Number of tokens read."""
        self.slots = 0
        """Slots written."""
        missing = max(LEAST_SLOTS - length, 0)
        self._memory = [F.pad(keys_values, (0, 0, 0, missing)) for keys_values in memory]
        self._memory_mask = _additive(memory_mask, length, missing, like=first)
        self._lay_out_memory()
        self._written = [first.new_empty(0)] * len(memory)  # each (2, G, H, T, F)
        self._mask = first.new_empty((self.groups, 1, 0))  # (G, K, T)
        self._own = first.new_zeros((1, 1))
        self._make_room(FIRST_STEPS)

    def __len__(self) -> int:
        """Number of beams of all groups."""
        return self.groups * self.beams

    def repeat(self, times: int) -> None:
        """Makes each row a group of ``times`` beams; what was read is the past of all."""
        self._mask = self._mask.repeat(1, times, 1)
        self.beams = times
        own = self._mask.new_full((times, times), -torch.inf)
        self._own = own.fill_diagonal_(0.0)
        self._make_room(self.slots + FIRST_STEPS * times)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        if self.beams == 1:
            self._keep(indices)
            return
        if groups is not None:
            self._keep(groups)
        parents = (indices % self.beams).view(self.groups, self.beams, 1)
        past = self._mask[:, :, : self.slots]
        past.copy_(past.gather(1, parents.expand_as(past)))

    def open_slots(self) -> Tensor | None:
        """Makes room for a position of each beam, and lets beams look at their own.

        Returns what to add to the scores of a beam's slots, :math:`(G,K,T)`; None if nothing.
        """
        new = self.slots + self.beams
        if new > self._mask.shape[2]:
            self._make_room(2 * new)
        self._mask[:, :, self.slots : new] = self._own
        if self.beams == 1 and new >= LEAST_SLOTS:
            return None
        return self._mask[:, :, : max(new, LEAST_SLOTS)]

    def write(self, layer: int, keys_values: Tensor) -> tuple[Tensor, Tensor]:
        """Writes a position of each beam, :math:`(GK,2HF)`, to the slots that are open.

        Returns the keys :math:`(GH,F,T)` and values :math:`(GH,T,F)` written so far, with at least
        ``LEAST_SLOTS`` slots.
        """
        new = keys_values.view(self.groups, self.beams, 2, self.heads, self.features)
        place = self._written[layer].narrow(3, self.slots, self.beams)
        place.copy_(new.permute(2, 0, 3, 1, 4))
        used = max(self.slots + self.beams, LEAST_SLOTS)
        keys, values = self._views[layer]
        return keys.narrow(2, 0, used), values.narrow(1, 0, used)

    def close_slots(self) -> None:
        self.slots += self.beams
        self.position += 1

    def _keep(self, groups: Tensor) -> None:
        self.groups = len(groups)
        self._memory = [keys_values.index_select(1, groups) for keys_values in self._memory]
        if self._memory_mask is not None:
            self._memory_mask = self._memory_mask[groups]
        self._lay_out_memory()
        self._mask = self._mask[groups]
        self._make_room(self._mask.shape[2], groups=groups)

    def _lay_out_memory(self) -> None:
        heads = self._memory[0].shape[2]
        self.memory = [_rows(keys_values) for keys_values in self._memory]
        """Keys :math:`(GH,F,S)` and values :math:`(GH,S,F)` of the memory by layer."""
        self.memory_mask = None
        """Added to the scores of the memory. *Shape:* :math:`(GH,1,S)`."""
        if self._memory_mask is not None:
            self.memory_mask = self._memory_mask.repeat_interleave(heads, dim=0)[:, 0]

    def _make_room(self, slots: int, groups: Tensor | None = None) -> None:
        slots = max(slots, LEAST_SLOTS)
        shape = (2, self.groups, self.heads, slots, self.features)
        for layer, before in enumerate(self._written):
            cache = self._mask.new_empty(shape)
            # The rest is written before it is read, but for what is masked up to LEAST_SLOTS:
            # zeros, as 0 times what is not finite would not be 0.
            cache[:, :, :, :LEAST_SLOTS] = 0.0
            if self.slots:
                used, place = before[:, :, :, : self.slots], cache[:, :, :, : self.slots]
                place.copy_(used if groups is None else used.index_select(1, groups))
            self._written[layer] = cache
        self._views = [_rows(cache) for cache in self._written]
        self._mask = F.pad(self._mask, (0, slots - self._mask.shape[2]), value=-torch.inf)


def _rows(keys_values: Tensor) -> tuple[Tensor, Tensor]:
    """Keys, turned, and values, a row a head: :math:`(2,G,H,T,F)` to (GH,F,T) and (GH,T,F)."""
    keys, values = keys_values.contiguous().flatten(1, 2).unbind(0)
    return keys.transpose(1, 2), values


def _additive(mask: Tensor | None, length: int, missing: int, *, like: Tensor) -> Tensor | None:
    if mask is None and not missing:
        return None
    found = like.new_zeros((like.shape[1], 1, 1, length + missing))
    if mask is not None:
        found[..., :length].masked_fill_(~mask, -torch.inf)
    found[..., length:] = -torch.inf
    return found
