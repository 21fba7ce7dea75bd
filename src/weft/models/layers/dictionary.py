"""Vectors of words out of what a dictionary knows of them."""

from typing import Literal, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.limits import require
from weft.models.layers.dropout import Dropout
from weft.models.layers.embedding import token_table

__all__ = ["DictionaryEmbedding"]


@final
class DictionaryEmbedding(Component, nn.Module):
    r"""A vector of each word: those of its kinds, each times its weight, pooled; else zero.

    With kinds :math:`k` of weights :math:`w_k` and vectors :math:`v_k` it is the mean, the maximum
    or :math:`\log\sum_k\exp` of :math:`w_k v_k`, feature by feature.

    Example:
        >>> embedding = DictionaryEmbedding.Config(dim=4).build(size=3)
        >>> found = torch.tensor([[[1.0, 2.0, 0.5], [1.0, 1.0, 1.0]]])  # of word 1: kinds 2 and 1
        >>> vectors, kinds = embedding(found, 3), embedding.kinds.weight
        >>> torch.allclose(vectors[0, 1], (0.5 * kinds[2] + kinds[1]) / 2), vectors[0, 2].tolist()
        (True, [0.0, 0.0, 0.0, 0.0])
    """

    class Config(BaseConfig):
        """Settings of the vectors."""

        dim: int = 16
        """Features of a kind."""
        pooling: Literal["mean", "max", "logsumexp"] = "mean"
        """How the vectors of a word's kinds become one."""
        dropout: float = 0.0
        """Probability of dropping a feature of a word in training."""

        def __post_init__(self) -> None:
            """Refuses what is no size and no probability."""
            require(self, "dictionary_embedding", sizes=["dim"], shares=["dropout"])

    config: Config

    def __init__(self, config: Config, *, size: int) -> None:
        nn.Module.__init__(self)
        self.config, self.out_dim = config, config.dim
        self.kinds = token_table(size, config.dim, pad_idx=0)
        self.dropout = Dropout(config.dropout)

    @override
    def forward(self, found: Tensor, length: int) -> Tensor:
        """Makes a vector for each word.

        Args:
            found: The place of a word, a kind's number, and its weight, for each finding; zeros
                are padding. *Shape:* :math:`(B,N,3)`.
            length: Words of the batch's rows, :math:`T`; what is found behind them is not looked
                at.

        Returns:
            *Shape:* :math:`(B,T,D)`.
        """
        places, numbers, weights = found.unbind(dim=-1)
        places, numbers = places.long(), numbers.long()
        vectors = self.kinds(numbers) * weights[..., None]
        real = (numbers > 0) & (places < length)
        # Which finding is of which word: a product with it adds up in one order on any device.
        each = torch.arange(length, device=found.device)[:, None] == places[:, None]
        each = (each & real[:, None]).to(vectors.dtype)
        counts = each.sum(dim=-1, keepdim=True)
        if self.config.pooling == "mean":
            pooled = each @ vectors / counts.clamp(min=1)
        else:
            places = torch.where(real, places, length)[..., None].expand_as(vectors)
            lowest = vectors.new_full((len(found), length + 1, self.out_dim), -torch.inf)
            highest = lowest.scatter_reduce(1, places, vectors, "amax")
            if self.config.pooling == "logsumexp":
                shift = highest.detach()
                over = torch.where(real[..., None], vectors - shift.gather(1, places), -torch.inf)
                pooled = shift[:, :length] + (each @ over.exp()).clamp(min=1).log()
            else:
                pooled = highest[:, :length]
            pooled = torch.where(counts > 0, pooled, 0.0)
        out: Tensor = self.dropout(pooled)
        return out
