"""The Transformer encoder (Vaswani et al. 2017)."""

from typing import final

from torch import Tensor
from typing_extensions import override

from weft.models.layers.attention import SelfAttention
from weft.models.layers.layer import Layer, LayerStack
from weft.models.layers.rotary import RotaryPositions

__all__ = ["TransformerEncoder", "TransformerEncoderLayer"]


@final
class TransformerEncoderLayer(Layer):
    """Self-attention and a feed-forward block, each in a residual connection.

    Args:
        config: The settings; none of them None.
        dim: Features in and out, :math:`D`.
        positions: Turns the queries and keys of self-attention; None does not.
    """

    class Config(Layer.Config):
        """Blocks of an encoder's layer."""

    def __init__(
        self, config: Config, *, dim: int, positions: RotaryPositions | None = None
    ) -> None:
        super().__init__(config, dim=dim)
        self.attention = SelfAttention(config.attention.build(), dim=dim, positions=positions)
        self.attention_residual = self.residual()
        self.feed_forward = config.feed_forward.build(dim=dim)
        self.feed_forward_residual = self.residual()

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """*Shape:* :math:`(B,S,D)` to :math:`(B,S,D)`; ``mask`` as in :class:`SelfAttention`."""
        x = self.attention_residual(x, lambda h: self.attention(h, mask))
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


@final
class TransformerEncoder(LayerStack):
    """A stack of encoder layers, see :class:`~weft.models.layers.layer.LayerStack`."""

    class Config(LayerStack.Config):
        """Settings of the encoder."""

        layer: TransformerEncoderLayer.Config = TransformerEncoderLayer.Config()
        """Settings of each layer."""

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """*Shape:* :math:`(B,S,D)` to :math:`(B,S,D)`; ``mask`` as in :class:`SelfAttention`."""
        return self.run(x, mask)
