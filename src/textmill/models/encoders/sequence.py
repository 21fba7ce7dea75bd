"""What encoders of a text have in common: vectors of tokens in, vectors of tokens out."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.poolings import MeanPooling, Pooling, VectorModule


class SequenceEncoder(VectorModule):
    """Base of encoders: from each token's vector to one that knows its text.

    What stands at padding has no effect on any real position.
    """

    class Config(BaseConfig):
        """Settings of an encoder."""

        reads_ids: ClassVar[bool] = False
        """Whether it reads the ids of tokens, and not their vectors: it has such of its own."""

        def default_pooling(self) -> "Pooling.Config":
            """The default pooling: how a text's vectors become one."""
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


def refuse_vectors(embedding: WordEmbedding.Config, *, beside: Iterable[object]) -> None:
    """Refuses vectors of tokens for an encoder that has its own (``reads_ids``).

    Args:
        embedding: Those of the model's settings, which must be left out.
        beside: What the model was given to stand beside tokens, each of which must be None.

    Example:
        >>> refuse_vectors(WordEmbedding.Config(), beside=[None])
    """
    if embedding != WordEmbedding.Config():
        raise UserError(
            "model.encoder has vectors of tokens of its own, but the recipe sets model.embedding. "
            "Leave that out; or start from an experiment for such encoders, as "
            "classification/pretrained."
        )
    if any(given is not None for given in beside):
        raise UserError(
            "The recipe has characters, affixes or a dictionary beside the tokens, but "
            "model.encoder has vectors of its own and takes no others. Leave them out."
        )
