"""Token embeddings with positions: the front of an encoder or a decoder."""

from typing import final

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.models.layers.dropout import Dropout
from weft.models.layers.positions import PositionEncoding

__all__ = ["Embedding", "token_table"]


def token_table(vocabulary_size: int, dim: int, *, pad_idx: int) -> nn.Embedding:
    """A table of token vectors with standard deviation ``dim ** -0.5``; the padding's is zero.

    That scale gives logits of unit variance when the table is tied to the output, and unit inputs
    after scaling by ``dim ** 0.5``.
    """
    weight = nn.init.normal_(torch.empty(vocabulary_size, dim), std=dim**-0.5)
    weight[pad_idx] = 0.0
    table: nn.Embedding = nn.Embedding.from_pretrained(weight, freeze=False, padding_idx=pad_idx)
    return table


@final
class Embedding(nn.Module):
    """Token vectors, scaled, plus positions, with dropout.

    Args:
        tokens: The table of token vectors; it may be shared with another front and the output.
        positions: The position encoding.
        scale: What token vectors are multiplied with.
        dropout: Probability of dropping a feature in training.
    """

    def __init__(
        self,
        tokens: nn.Embedding,
        positions: PositionEncoding,
        *,
        scale: float = 1.0,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.tokens = tokens
        self.positions = positions
        self.scale = scale
        self.dropout = Dropout(dropout)

    @override
    def forward(self, ids: Tensor, start: int = 0) -> Tensor:
        """Embeds ids from position ``start`` on. *Shape:* :math:`(B,T)` to :math:`(B,T,D)`."""
        rows = self.positions.rows(start, start + ids.shape[1])
        x = self.tokens(ids)
        if self.scale != 1.0:
            x = x * self.scale
        out: Tensor = self.dropout(x if rows is None else x + rows)
        return out
