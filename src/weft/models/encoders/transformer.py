"""The Transformer encoder (Vaswani et al. 2017)."""

from typing import final

from torch import Tensor
from typing_extensions import override

from weft.models.layers.layer import LayerStack
from weft.models.layers.self_attention import SelfAttentionLayer

__all__ = ["TransformerEncoder"]


@final
class TransformerEncoder(LayerStack):
    """A stack of layers, see :class:`~weft.models.layers.layer.LayerStack`."""

    class Config(LayerStack.Config):
        """Settings of the encoder."""

        layer: SelfAttentionLayer.Config = SelfAttentionLayer.Config()
        """Settings of each layer."""

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """*Shape:* :math:`(B,S,D)` to :math:`(B,S,D)`; ``mask`` as in :class:`SelfAttention`."""
        return self.run(x, mask)
