"""The Transformer encoder (Vaswani et al. 2017)."""

from collections.abc import Sequence
from typing import final

from torch import Tensor, nn
from typing_extensions import override

from weft.models.layers.attention import SelfAttention
from weft.models.layers.feed_forward import FeedForward
from weft.models.layers.residual import NormOrder, Residual

__all__ = ["TransformerEncoder", "TransformerEncoderLayer"]


@final
class TransformerEncoderLayer(nn.Module):
    """Self-attention and a feed-forward block, each in a residual connection.

    Args:
        attention: The self-attention.
        feed_forward: The feed-forward block; of the same ``dim``.
        norm_order: Whether normalization comes before (``pre``) or after (``post``) a block.
        dropout: Probability of dropping a feature of a block's output in training.
    """

    def __init__(
        self,
        *,
        attention: SelfAttention,
        feed_forward: FeedForward,
        norm_order: NormOrder,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        dim = attention.dim
        self.attention = attention
        self.attention_residual = Residual(nn.LayerNorm(dim), order=norm_order, dropout=dropout)
        self.feed_forward = feed_forward
        self.feed_forward_residual = Residual(nn.LayerNorm(dim), order=norm_order, dropout=dropout)

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """*Shape:* :math:`(B,S,D)` to :math:`(B,S,D)`; ``mask`` as in :class:`SelfAttention`."""
        x = self.attention_residual(x, lambda h: self.attention(h, mask))
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


@final
class TransformerEncoder(nn.Module):
    """A stack of layers, with a last normalization if their order is ``pre``.

    Args:
        layers: The layers, at least one.
        norm: The last normalization; None for post-norm layers, which end in one already.
    """

    def __init__(
        self, layers: Sequence[TransformerEncoderLayer], *, norm: nn.Module | None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm if norm is not None else nn.Identity()

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None) -> Tensor:
        """*Shape:* :math:`(B,S,D)` to :math:`(B,S,D)`; ``mask`` as in :class:`SelfAttention`."""
        for layer in self.layers:
            x = layer(x, mask)
        out: Tensor = self.norm(x)
        return out
