"""Encoders of a text: vectors of tokens in, vectors of tokens out; the simple ones."""

from abc import abstractmethod
from collections.abc import Iterable
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.poolings import MaxPooling, MeanPooling, Pooling, VectorModule


class SequenceEncoder(VectorModule):
    """Base of encoders: from each token's vector to one that knows its text.

    What stands at padding has no effect on any real position.
    """

    class Config(BaseConfig):
        reads_ids: ClassVar[bool] = False
        """Whether it reads the ids of tokens, and not their vectors: it has its own."""

        def default_pooling(self) -> "Pooling.Config":
            """The default pooling: how a text's vectors become one."""
            return MeanPooling.Config()

    max_length: int | None = None
    """Most tokens of a text; None: any number."""
    num_dims = 3

    @abstractmethod
    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        """Makes of each token's vector one that knows its text; anything at padding.

        *Shape:* :math:`(B,T,D)`, and real tokens of each row, 1 or more, on any device,
        :math:`(B)`; to :math:`(B,T,H)`, H being ``out_dim``.
        """


def real_tokens(x: Tensor, lengths: Tensor) -> Tensor:
    """True at real tokens. *Shape:* :math:`(B,T)`, of an ``x`` of :math:`(B,T,*)`."""
    return torch.arange(x.shape[1], device=x.device) < lengths.to(x.device)[:, None]


def refuse_vectors(embedding: WordEmbedding.Config, *, beside: Iterable[object]) -> None:
    """Refuses vectors of tokens for an encoder that has its own (``reads_ids``).

    The model's settings must leave them out, and what may stand ``beside`` tokens must be None.
    """
    if embedding != WordEmbedding.Config():
        raise UserError(
            "model.encoder has vectors of tokens of its own, but the recipe sets model.embedding. "
            "Leave that out; or start from an experiment for such encoders, as "
            "classification/pretrained."
        )
    if any(given is not None for given in beside):
        raise UserError(
            "The recipe has characters, affixes, a dictionary or a context beside the tokens, but "
            "model.encoder has vectors of its own and takes no others. Leave them out."
        )


@registries.encoders.register("averaging")
class AveragingEncoder(SequenceEncoder):
    """The tokens' own vectors, of which whole tokens are dropped in training; pooled by the mean.

    With ``model.hidden`` layers after the mean it is the deep averaging network of Iyyer et al.
    2015, "Deep Unordered Composition Rivals Syntactic Methods for Text Classification".
    """

    class Config(SequenceEncoder.Config):
        word_dropout: float = 0.3
        """Probability of leaving out a token in training (zeros take its place, and the mean is
        over the tokens that are left); the paper's value."""

        def __post_init__(self) -> None:
            require(self, shares=["word_dropout"])

    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        share = self.config.word_dropout
        if not (self.training and share):
            return x
        kept = torch.rand(x.shape[:2], device=x.device) >= share
        real = torch.arange(x.shape[1], device=x.device) < lengths.to(x.device)[:, None]
        # A text that would lose all its tokens keeps them; the mean is over those that are left.
        kept |= ~(kept & real).any(dim=1, keepdim=True)
        left = (kept & real).sum(dim=1, keepdim=True)
        scale = real.sum(dim=1, keepdim=True) / left.clamp(min=1)
        out: Tensor = x * (kept * scale)[..., None]
        return out


@registries.encoders.register("cnn")
class CnnEncoder(SequenceEncoder):
    """Filters of several widths over neighbouring tokens, each with a ReLU; pooled by the maximum.

    A filter stands at every token, beginning half its width before it; outside of the text are
    zeros, whatever the text's neighbours in its batch.

    Source: Kim 2014, "Convolutional Neural Networks for Sentence Classification".
    """

    class Config(SequenceEncoder.Config):
        filters: int = 100
        """Filters of each width."""
        widths: tuple[int, ...] = (3, 4)
        """How many tokens a filter sees."""

        def __post_init__(self) -> None:
            if not self.widths or min(self.widths) < 1 or self.filters < 1:
                raise UserError(
                    "An encoder of type cnn needs filters and widths of at least 1, but has "
                    f"filters={self.filters} and widths={list(self.widths)}."
                )

        @override
        def default_pooling(self) -> Pooling.Config:
            return MaxPooling.Config()

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        self.config, self.out_dim = config, config.filters * len(config.widths)
        self.filters = nn.ModuleList([nn.Conv1d(dim, config.filters, w) for w in config.widths])

    @override
    def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
        channels = x.masked_fill(~real_tokens(x, lengths)[..., None], 0.0).transpose(1, 2)
        found = []
        for width, conv in zip(self.config.widths, self.filters, strict=True):
            before = width // 2
            found.append(conv(F.pad(channels, (before, width - 1 - before))))
        return torch.cat(found, dim=1).relu().transpose(1, 2)
