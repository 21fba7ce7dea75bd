"""The Transformer decoder (Vaswani et al. 2017): over whole targets, or one position at a time."""

from collections.abc import Iterable
from typing import cast, final

from torch import Tensor
from typing_extensions import override

from weft.models.layers.attention import CrossAttention, SelfAttention
from weft.models.layers.heads import Attention, MultiHead
from weft.models.layers.layer import Layer, LayerStack
from weft.models.layers.positions import RotaryPositions

__all__ = ["TransformerDecoder", "TransformerDecoderLayer"]


@final
class TransformerDecoderLayer(Layer):
    """Causal self-attention, attention to the memory, and a feed-forward block, each with residual.

    Args:
        config: The settings; none of them None.
        dim: Features in and out, :math:`D`.
        positions: Turns the queries and keys of self-attention; None does not.
    """

    class Config(Layer.Config):
        """Blocks of a decoder's layer."""

        cross_attention: Attention.Config = MultiHead.Config()
        """The attention to the encoder's output."""

    def __init__(
        self, config: Config, *, dim: int, positions: RotaryPositions | None = None
    ) -> None:
        super().__init__(config, dim=dim)
        self.attention = SelfAttention(config.attention.build(), dim=dim, positions=positions)
        self.attention_residual = self.residual()
        self.cross_attention = CrossAttention(config.cross_attention.build(), dim=dim)
        self.cross_attention_residual = self.residual()
        self.feed_forward = config.feed_forward.build(dim=dim)
        self.feed_forward_residual = self.residual()

    @override
    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Runs whole targets.

        *Shape:* :math:`(B,T,D)` and ``memory`` :math:`(B,S,D)` to :math:`(B,T,D)`; ``memory_mask``
        as in :class:`CrossAttention`.
        """
        keys_values = self.cross_attention.project_memory(memory)
        x = self.attention_residual(x, lambda h: self.attention(h, is_causal=True))
        x = self.cross_attention_residual(
            x, lambda h: self.cross_attention(h, keys_values, memory_mask)
        )
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out

    def step(
        self,
        x: Tensor,
        cache: Tensor,
        position: int,
        *,
        keys_values: Tensor,
        memory_mask: Tensor | None,
    ) -> Tensor:
        """Runs one new position.

        *Shape:* :math:`(B,1,D)` to :math:`(B,1,D)`; ``cache`` and ``keys_values`` are those of
        :meth:`SelfAttention.step` and :meth:`CrossAttention.forward`.
        """
        x = self.attention_residual(x, lambda h: self.attention.step(h, cache, position))
        # Rows that share a memory (the beams of a source) are queries of one attention over it.
        x = x.view(keys_values.shape[1], -1, x.shape[-1])
        x = self.cross_attention_residual(
            x, lambda h: self.cross_attention(h, keys_values, memory_mask)
        )
        x = x.view(-1, 1, x.shape[-1])
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


@final
class TransformerDecoder(LayerStack):
    """A stack of decoder layers, see :class:`~weft.models.layers.layer.LayerStack`."""

    class Config(LayerStack.Config):
        """Settings of the decoder."""

        layer: TransformerDecoderLayer.Config = TransformerDecoderLayer.Config()
        """Settings of each layer."""

    def each_layer(self) -> Iterable[TransformerDecoderLayer]:
        """The layers, typed."""
        return cast("Iterable[TransformerDecoderLayer]", self.layers)

    @override
    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Runs whole targets.

        *Shape:* :math:`(B,T,D)` and ``memory`` :math:`(B,S,D)` to :math:`(B,T,D)`; ``memory_mask``
        as in :class:`CrossAttention`.
        """
        return self.run(x, memory, memory_mask)
