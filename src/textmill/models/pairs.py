"""Models of pairs of texts: both through one encoder, then compared."""

import dataclasses
from collections.abc import Sized

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.classifier import TextConfig, TextVectorConfig, score_layers
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.sequence import AveragingEncoder, SequenceEncoder
from textmill.models.layers.dropout import Dropout
from textmill.models.poolings import Pooling
from textmill.models.vocabulary import HasVocabInfo
from textmill.runtime.pretrained import find_pretrained, sentence_settings


class PairScores(Component, nn.Module):
    r"""Base of models that give two texts some numbers.

    Both texts become vectors :math:`a` and :math:`b` by one encoder, and

    .. math::
        s = f([a; b; |a - b|; a \odot b])

    Source: Mou et al. 2016, "Natural Language Inference by Tree-Based Convolution"; Conneau et al.
    2017 (InferSent).
    """

    class Config(TextConfig):
        encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """What makes each token's vector know its text; one for both texts."""
        together: bool | None = None
        """Whether a pretrained encoder reads both texts as one, so that each token knows the other
        text, too; the scores are then of one vector (Devlin et al. 2019, section 4.1). null: a
        pretrained one does; others cannot."""

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo, labels: Sized) -> None:
        nn.Module.__init__(self)
        if config.together and not config.encoder.reads_ids:
            raise UserError(
                "model.together is for encoders that were trained on pairs: set "
                "model.encoder.type=pretrained, or leave it at false."
            )
        reads_ids = config.encoder.reads_ids
        self.together = reads_ids if config.together is None else config.together
        self.text = config.text_vector(tokenizer, of_pairs=self.together)
        self.config = self.text.recorded(config)
        size = self.text.out_dim if self.together else 4 * self.text.out_dim
        self.scores = score_layers(size, config.hidden, len(labels), dropout=config.dropout)

    @override
    def forward(self, text1: Tensor, lengths1: Tensor, text2: Tensor, lengths2: Tensor) -> Tensor:
        """Unnormalized scores of pairs, :math:`(B,L)`.

        *Shape:* ids of the first texts :math:`(B,T)`, of the second :math:`(B,U)`, and the number
        of real tokens of each, 1 or more, :math:`(B)`.
        """
        if self.together:
            one: Tensor = self.scores(self.text.read_pairs(text1, lengths1, text2, lengths2))
            return one
        a, b = self.text(text1, lengths1), self.text(text2, lengths2)
        out: Tensor = self.scores(torch.cat([a, b, (a - b).abs(), a * b], dim=1))
        return out


@registries.models.register("pair_classifier")
class PairClassifier(PairScores):
    """Scores the labels of a pair of texts."""


@registries.models.register("pair_regressor")
class PairRegressor(PairScores):
    """Gives a pair of texts one number."""

    def __init__(self, config: PairScores.Config, *, tokenizer: HasVocabInfo) -> None:
        super().__init__(config, tokenizer=tokenizer, labels=range(1))


@registries.models.register("ranker")
class Ranker(Component, nn.Module):
    """How well documents answer a query: the cosine between a vector of each.

    All texts go through one encoder; layers of its own take the query's vector, and others the
    documents', to where they are compared, so documents can be encoded before any query is known.

    Source: Huang et al. 2013, "Learning Deep Structured Semantic Models for Web Search".
    """

    class Config(TextConfig):
        dim: int | None = 64
        """Features of the vectors that are compared; null: those of the texts are, as they come
        from the pooling."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "model", sizes=["dim"])
            if self.dim is None and self.hidden:
                raise UserError(
                    "model.dim=null compares the texts' own vectors, so there are no layers before "
                    f"it, but model.hidden is {list(self.hidden)}. Leave one of them out."
                )

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.text = config.text_vector(tokenizer)
        self.config = self.text.recorded(config)
        self.query, self.document = (self._layers(config) for _ in range(2))

    def _layers(self, config: Config) -> nn.Module:
        if config.dim is None:
            return Dropout(config.dropout)
        size = self.text.out_dim
        return score_layers(size, config.hidden, config.dim, dropout=config.dropout)

    @override
    def forward(self, query: Tensor, lengths: Tensor, *documents: Tensor) -> Tensor:
        """The cosines, :math:`(B,K)`, of documents with their query.

        ``documents`` are ids :math:`(B,U)` and lengths :math:`(B)` of each row's first document,
        then of its second one, and so on: :math:`K` of them. *Shape* of queries: :math:`(B,T)`,
        their lengths, 1 or more, :math:`(B)`.
        """
        asked = self.query(self.text(query, lengths))
        # In one batch, so that equal documents have equal scores: a tie is no right answer.
        width = max(text.shape[1] for text in documents[::2])
        texts = torch.cat([F.pad(text, (0, width - text.shape[1])) for text in documents[::2]])
        found = self.document(self.text(texts, torch.cat(documents[1::2])))
        by_row = found.view(-1, query.shape[0], found.shape[1]).transpose(0, 1)
        return F.cosine_similarity(asked[:, None], by_row, dim=2)


def ranking_hinge(positive: Tensor, negative: Tensor, *, margin: float) -> Tensor:
    r"""What a right score lacks of being above a wrong one by a margin. *Shape:* :math:`(B)`.

    .. math::
        \ell = \max(0, m - (s^+ - s^-))

    Example:
        >>> ranking_hinge(torch.tensor([0.5, 1.0]), torch.tensor([0.25, -0.5]), margin=1.0).tolist()
        [0.75, 0.0]
    """
    return (margin - positive.float() + negative.float()).clamp(min=0)


@registries.models.register("sentence_encoder")
class SentenceEncoder(Component, nn.Module):
    """A vector of a text: its tokens' vectors, pooled.

    All texts go through one encoder, so texts can be encoded before it is known what they are
    compared with.

    Source: Reimers and Gurevych 2019, "Sentence-BERT"; with its default encoder, which takes the
    mean of word vectors, Wieting et al. 2016, "Towards Universal Paraphrastic Sentence Embeddings".
    """

    class Config(TextVectorConfig):
        encoder: SequenceEncoder.Config = AveragingEncoder.Config()
        """What makes each token's vector know its text."""
        pooling: Pooling.Config | None = None
        """How a text's vectors become one; null is as a pretrained encoder's folder says it
        (``modules.json``), else the encoder's own: for most the mean."""
        normalize: bool | None = None
        """Whether a vector is divided by its length; null is as that folder says, else true."""

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        config = _with_folder_settings(config)
        self.text = config.text_vector(tokenizer)
        self.config = self.text.recorded(config)

    @override
    def forward(self, *texts: Tensor) -> Tensor:
        """A vector of each text, :math:`(B,K,H)`.

        ``texts`` are ids :math:`(B,T)` and lengths :math:`(B)`, 1 or more, of each row's first
        text, then of its second one, and so on: :math:`K` of them.
        """
        pairs = zip(texts[::2], texts[1::2], strict=True)
        vectors = torch.stack([self.text(*pair) for pair in pairs], dim=1)
        return F.normalize(vectors, dim=-1) if self.config.normalize else vectors


def _with_folder_settings(config: SentenceEncoder.Config) -> SentenceEncoder.Config:
    """Fills pooling and normalization from the pretrained encoder's folder, else by default.

    A run has its own architecture and needs no folder: there both are set.
    """
    pooling, normalize, encoder = config.pooling, config.normalize, config.encoder
    if (pooling is None or normalize is None) and isinstance(encoder, PretrainedEncoder.Config):
        settings = None
        if encoder.architecture is None and encoder.path:
            folder = find_pretrained(encoder.path, revision=encoder.revision)
            settings = sentence_settings(folder)
        if settings is not None:
            pooling = pooling or registries.poolings.get(settings.pooling).Config()
            normalize = settings.normalize if normalize is None else normalize
    pooling, normalize = pooling or encoder.default_pooling(), normalize is not False
    return dataclasses.replace(config, pooling=pooling, normalize=normalize)
