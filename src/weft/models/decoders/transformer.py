"""The Transformer decoder (Vaswani et al. 2017): over whole targets, or one position at a time."""

from collections.abc import Iterable, Sequence
from typing import cast, final

from torch import Tensor, nn
from typing_extensions import override

from weft.models.layers.attention import CrossAttention, SelfAttention
from weft.models.layers.feed_forward import FeedForward
from weft.models.layers.residual import NormOrder, Residual

__all__ = ["TransformerDecoder", "TransformerDecoderLayer"]


@final
class TransformerDecoderLayer(nn.Module):
    """Causal self-attention, attention to the memory, and a feed-forward block, each with residual.

    Args:
        attention: The self-attention.
        cross_attention: The attention to the memory; of the same ``dim``.
        feed_forward: The feed-forward block; of the same ``dim``.
        norm_order: Whether normalization comes before (``pre``) or after (``post``) a block.
        dropout: Probability of dropping a feature of a block's output in training.
    """

    def __init__(
        self,
        *,
        attention: SelfAttention,
        cross_attention: CrossAttention,
        feed_forward: FeedForward,
        norm_order: NormOrder,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        dim = attention.dim
        self.attention = attention
        self.attention_residual = Residual(nn.LayerNorm(dim), order=norm_order, dropout=dropout)
        self.cross_attention = cross_attention
        self.cross_attention_residual = Residual(
            nn.LayerNorm(dim), order=norm_order, dropout=dropout
        )
        self.feed_forward = feed_forward
        self.feed_forward_residual = Residual(nn.LayerNorm(dim), order=norm_order, dropout=dropout)

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
class TransformerDecoder(nn.Module):
    """A stack of layers, with a last normalization if their order is ``pre``.

    Args:
        layers: The layers, at least one.
        norm: The last normalization; None for post-norm layers, which end in one already.
    """

    def __init__(
        self, layers: Sequence[TransformerDecoderLayer], *, norm: nn.Module | None
    ) -> None:
        super().__init__()
        self.layers = nn.ModuleList(layers)
        self.norm = norm if norm is not None else nn.Identity()

    def each_layer(self) -> Iterable[TransformerDecoderLayer]:
        """The layers, typed."""
        return cast("Iterable[TransformerDecoderLayer]", self.layers)

    @override
    def forward(self, x: Tensor, memory: Tensor, memory_mask: Tensor | None = None) -> Tensor:
        """Runs whole targets.

        *Shape:* :math:`(B,T,D)` and ``memory`` :math:`(B,S,D)` to :math:`(B,T,D)`; ``memory_mask``
        as in :class:`CrossAttention`.
        """
        for layer in self.each_layer():
            x = layer(x, memory, memory_mask)
        out: Tensor = self.norm(x)
        return out
