"""Vectors of words: a table that is trained, or begins with those of a file."""

from pathlib import Path
from typing import final

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.limits import require
from weft.models.layers.dropout import Dropout
from weft.models.layers.embedding import token_table

__all__ = ["WordEmbedding", "hide_words"]


@final
class WordEmbedding(Component, nn.Module):
    """A vector for each token id; that of padding is zero and stays so.

    Example:
        >>> import torch
        >>> embedding = WordEmbedding.Config(dim=4).build(vocabulary_size=9, pad_idx=0)
        >>> embedding(torch.tensor([[5, 0]])).shape, embedding(torch.tensor([0])).abs().sum().item()
        (torch.Size([1, 2, 4]), 0.0)
    """

    class Config(BaseConfig):
        """Settings of the table."""

        dim: int = 100
        """Features of a vector."""
        dropout: float = 0.0
        """Probability of dropping a feature in training."""
        vectors: Path | None = None
        """A text file of vectors that a fresh run begins with (GloVe, word2vec, fastText): a word
        and its numbers in each line; null: all begin at random."""
        frozen: bool = False
        """Whether the vectors stay as they are at the start."""

        def __post_init__(self) -> None:
            """Refuses what is no size and no probability."""
            require(self, "embedding", sizes=["dim"], shares=["dropout"])

    config: Config

    def __init__(self, config: Config, *, vocabulary_size: int, pad_idx: int) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.tokens = token_table(vocabulary_size, config.dim, pad_idx=pad_idx)
        self.tokens.weight.requires_grad_(not config.frozen)
        self.dropout = Dropout(config.dropout)

    def begin(self, ids: Tensor, vectors: Tensor) -> None:
        """Takes vectors in place of random ones.

        Args:
            ids: The tokens. *Shape:* :math:`(N)`.
            vectors: Their vectors. *Shape:* :math:`(N,D)`.
        """
        weight = self.tokens.weight
        with torch.no_grad():
            weight[ids.to(weight.device)] = vectors.to(weight)

    @override
    def forward(self, ids: Tensor) -> Tensor:
        """*Shape:* :math:`(*)` to :math:`(*,D)`."""
        out: Tensor = self.dropout(self.tokens(ids))
        return out


def hide_words(words: Tensor, share: float, *, pad_idx: int, unk_idx: int) -> Tensor:
    """Ids of which a share, drawn at random, is the unknown word's; padding stays.

    What is left of a hidden word is what is known beside its id, and its neighbours, as of a word
    that training never saw.

    Example:
        >>> hidden = hide_words(torch.tensor([[5, 6, 0]]), 0.999, pad_idx=0, unk_idx=1)
        >>> hidden.shape, hidden[0, 2].item()
        (torch.Size([1, 3]), 0)
    """
    dropped = torch.rand(words.shape, device=words.device) < share
    return words.masked_fill(dropped & (words != pad_idx), unk_idx)
