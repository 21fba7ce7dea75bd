"""The layer of a Transformer without a memory: an encoder's, and that of a decoder alone."""

from typing import final

from torch import Tensor
from typing_extensions import override

from weft.models.layers.attention import SelfAttention
from weft.models.layers.layer import Layer
from weft.models.layers.positions import RotaryPositions

__all__ = ["SelfAttentionLayer"]


@final
class SelfAttentionLayer(Layer):
    """Self-attention and a feed-forward block, each in a residual connection.

    Args:
        config: The settings; none of them None.
        dim: Features in and out, :math:`D`.
        positions: Turns the queries and keys of self-attention; None does not.
    """

    class Config(Layer.Config):
        """Blocks of a layer."""

    def __init__(
        self, config: Config, *, dim: int, positions: RotaryPositions | None = None
    ) -> None:
        super().__init__(config, dim=dim)
        self.attention = SelfAttention(config.attention.build(), dim=dim, positions=positions)
        self.attention_residual = self.residual()
        self.feed_forward = config.feed_forward.build(dim=dim)
        self.feed_forward_residual = self.residual()

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """Runs whole sequences.

        *Shape:* :math:`(B,T,D)` to :math:`(B,T,D)`; ``mask`` and ``is_causal`` as in
        :class:`SelfAttention`.
        """
        x = self.attention_residual(x, lambda h: self.attention(h, mask, is_causal=is_causal))
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out

    def step(self, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """Runs one new position after those in the cache.

        *Shape:* :math:`(B,1,D)` to :math:`(B,1,D)`; ``cache`` as in :meth:`SelfAttention.step`.
        """
        x = self.attention_residual(x, lambda h: self.attention.step(h, cache, position))
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out
