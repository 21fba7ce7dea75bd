"""Transformer decoders, whole targets or one position at a time: with a memory, and without."""

from typing import final

from torch import Tensor
from typing_extensions import override

from textmill.models.decoder_state import DecoderState
from textmill.models.layers.attention import Attention, CrossAttention, MultiHead, SelfAttention
from textmill.models.layers.layer import Layer, LayerStack, SelfAttentionLayer
from textmill.models.layers.positions import RotaryPositions


@final
class TransformerDecoderLayer(Layer):
    """Causal self-attention, attention to the memory, and a feed-forward block, each with residual.

    Its arguments are those of :class:`SelfAttentionLayer`.
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
    """A stack of decoder layers, see :class:`~textmill.models.layers.layer.LayerStack`."""

    class Config(LayerStack.Config):
        """Settings of the decoder."""

        layer: TransformerDecoderLayer.Config = TransformerDecoderLayer.Config()
        """Settings of each layer."""

    @override
    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """As :class:`TransformerDecoderLayer`."""
        return self.run(x, memory, memory_mask)


@final
class CausalDecoder(LayerStack):
    """A stack of layers in which every position sees itself and those before it (GPT)."""

    class Config(LayerStack.Config):
        """Settings of the decoder."""

        layer: SelfAttentionLayer.Config = SelfAttentionLayer.Config()
        """Settings of each layer."""

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """*Shape:* :math:`(B,T,D)` to :math:`(B,T,D)`.

        A ``mask``, as of :meth:`SelfAttention.forward`, has what every position sees instead.
        """
        return self.run(x, mask, mask is None)

    def start(self, like: Tensor) -> DecoderState:
        """A state in which nothing was read, with a row for each of ``like``, and no memory."""
        attention = next(iter(self.each_layer())).attention
        sizes = (2, like.shape[0], attention.num_kv_heads, 0, attention.head_dim)
        return DecoderState([like.new_zeros(sizes)] * len(self.layers), None)

    def step(self, x: Tensor, state: DecoderState) -> Tensor:
        """Runs one new position; the state moves on. *Shape:* :math:`(B,1,D)` to the same."""
        for number, layer in enumerate(self.each_layer()):
            x = layer.step(x, state.self_cache(number), state.position)
        state.position += 1
        out: Tensor = self.norm(x)
        return out
