"""Vectors of words out of their beginnings, endings and shapes."""

from typing import Protocol, final

from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.limits import require
from weft.models.layers.embedding import token_table
from weft.models.vocabulary import VocabInfo

__all__ = ["AffixEmbedding", "AffixInfo"]


class AffixInfo(VocabInfo, Protocol):
    """What a model needs to know of affixes."""

    @property
    def length(self) -> int:
        """Places of a word."""
        ...


@final
class AffixEmbedding(Component, nn.Module):
    """A vector of each word: those of its affixes, one behind the other.

    Source: Collobert et al. 2011, "Natural Language Processing (Almost) from Scratch", section 6.1
    (suffixes and capitals as features of words, each with a table of its own).

    Example:
        >>> import torch
        >>> embedding = AffixEmbedding.Config(dim=4).build(size=9, pad_idx=0, length=2)
        >>> words = torch.tensor([[[3, 5], [1, 2], [0, 0]]])
        >>> embedding(words).shape, embedding(words)[0, 2].abs().sum().item()
        (torch.Size([1, 3, 8]), 0.0)
    """

    class Config(BaseConfig):
        """Settings of the vectors."""

        dim: int = 16
        """Features of an affix."""

        def __post_init__(self) -> None:
            """Refuses what is no size."""
            require(self, "affix_embedding", sizes=["dim"])

    config: Config

    def __init__(self, config: Config, *, size: int, pad_idx: int, length: int) -> None:
        nn.Module.__init__(self)
        self.config, self.pad_idx, self.out_dim = config, pad_idx, config.dim * length
        self.affixes = token_table(size, config.dim, pad_idx=pad_idx)

    @override
    def forward(self, affixes: Tensor) -> Tensor:
        """*Shape:* :math:`(B,T,A)` to :math:`(B,T,A D)`; zero where no word is.

        A batch without any word may leave out places that are padding in all of it.
        """
        vectors = self.affixes(affixes).flatten(start_dim=2)
        return F.pad(vectors, (0, self.out_dim - vectors.shape[2]))
