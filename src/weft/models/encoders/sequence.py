"""What encoders of a text have in common: vectors of tokens in, vectors of tokens out."""

from abc import abstractmethod

import torch
from torch import Tensor
from typing_extensions import override

from weft.config.component import Config as BaseConfig
from weft.models.poolings import MeanPooling, Pooling, VectorModule

__all__ = ["SequenceEncoder", "real_tokens"]


class SequenceEncoder(VectorModule):
    """Base of encoders: from each token's vector to one that knows its text.

    What stands at padding has no effect on any real position.
    """

    class Config(BaseConfig):
        """Settings of an encoder."""

        def default_pooling(self) -> "Pooling.Config":
            """How a text's vectors become one where nobody says it."""
            return MeanPooling.Config()

    max_length: int | None = None
    """Most tokens of a text; None: any number."""
    num_dims = 3

    @abstractmethod
    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Makes of each token's vector one that knows its text.

        Args:
            x: Vectors of tokens. *Shape:* :math:`(B,T,D)`.
            lengths: Real tokens of each row, 1 or more, on any device. *Shape:* :math:`(B)`.

        Returns:
            *Shape:* :math:`(B,T,H)`, H being ``out_dim``; anything at padding.
        """


def real_tokens(x: Tensor, lengths: Tensor) -> Tensor:
    """True at real tokens. *Shape:* :math:`(B,T)`, of an ``x`` of :math:`(B,T,*)`.

    Example:
        >>> real_tokens(torch.zeros(2, 3), torch.tensor([1, 3])).tolist()
        [[True, False, False], [True, True, True]]
    """
    return torch.arange(x.shape[1], device=x.device) < lengths.to(x.device)[:, None]
