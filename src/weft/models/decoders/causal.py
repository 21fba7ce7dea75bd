"""The Transformer without an encoder (GPT): every position sees itself and those before it."""

from collections.abc import Iterable
from typing import cast, final

import torch
from torch import Tensor
from typing_extensions import override

from weft.models.decoder_state import FIRST_CAPACITY
from weft.models.layers.layer import LayerStack, SelfAttentionLayer

__all__ = ["CausalDecoder", "CausalState"]


@final
class CausalState:
    """Keys and values of the tokens that were read, for a search.

    Args:
        empty: A tensor without positions, for its sizes. *Shape:* :math:`(L,2,B,H,0,K)`.
    """

    def __init__(self, empty: Tensor) -> None:
        self.position = 0
        """Number of tokens read."""
        self._cache = empty.new_zeros((*empty.shape[:4], FIRST_CAPACITY, empty.shape[5]))

    def cache(self, layer: int) -> Tensor:
        """A layer's keys and values, with room for one more. *Shape:* :math:`(2,B,H,T,K)`."""
        if self.position == self._cache.shape[4]:
            self._cache = torch.cat([self._cache, torch.zeros_like(self._cache)], dim=4)
        return self._cache[layer]

    def repeat(self, times: int) -> None:
        """Makes each row a group of ``times`` equal rows."""
        self._cache = self._cache.repeat_interleave(times, dim=2)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        """Keeps the rows of these indices, in their order; an index may repeat."""
        del groups  # nothing is shared in a group
        self._cache = self._cache.index_select(2, indices)


@final
class CausalDecoder(LayerStack):
    """A stack of such layers, see :class:`~weft.models.layers.layer.LayerStack`."""

    class Config(LayerStack.Config):
        """Settings of the decoder."""

        layer: SelfAttentionLayer.Config = SelfAttentionLayer.Config()
        """Settings of each layer."""

    def each_layer(self) -> Iterable[SelfAttentionLayer]:
        """The layers, typed."""
        return cast("Iterable[SelfAttentionLayer]", self.layers)

    @override
    def forward(self, x: Tensor) -> Tensor:
        """*Shape:* :math:`(B,T,D)` to :math:`(B,T,D)`."""
        return self.run(x, None, True)

    def start(self, like: Tensor) -> CausalState:
        """A state in which nothing was read, with a row for each of ``like``."""
        attention = next(iter(self.each_layer())).attention
        sizes = (len(self.layers), 2, len(like), attention.num_kv_heads, 0, attention.head_dim)
        return CausalState(like.new_zeros(sizes))

    def step(self, x: Tensor, state: CausalState) -> Tensor:
        """Runs one new position; the state moves on. *Shape:* :math:`(B,1,D)` to the same."""
        for number, layer in enumerate(self.each_layer()):
            x = layer.step(x, state.cache(number), state.position)
        state.position += 1
        out: Tensor = self.norm(x)
        return out
