"""Classifier and regressor of texts: vectors of tokens, an encoder, a pooling, layers."""

import dataclasses
import itertools
from collections.abc import Sequence, Sized
from typing import Any, TypedDict, TypeVar, Unpack

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.sequence import (
    CnnEncoder,
    SequenceEncoder,
    real_tokens,
    refuse_vectors,
)
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.word_embeddings import DictionaryEmbedding, WordEmbedding
from textmill.models.ngrams import HasNgrams
from textmill.models.poolings import Pooling
from textmill.models.vocabulary import HasDim, HasSize, HasVocabInfo, ModelVocabInfo
from textmill.models.wide import WideScores

C = TypeVar("C", bound="TextVectorConfig")


class TextVector(nn.Module):
    """From token ids to one vector of a text."""

    def __init__(
        self,
        embedding: WordEmbedding.Config,
        encoder: SequenceEncoder.Config,
        pooling: Pooling.Config | None,
        *,
        vocab_info: ModelVocabInfo,
        dictionary: DictionaryEmbedding | None = None,
        of_pairs: bool = False,
    ) -> None:
        super().__init__()
        self.embedding: WordEmbedding | None = None
        self.encoder: SequenceEncoder
        self.dictionary, self.pad_idx = dictionary, vocab_info.pad_idx
        if encoder.reads_ids:
            refuse_vectors(embedding, beside=(dictionary,))
            reads = "pairs" if of_pairs else "texts"
            self.encoder = encoder.build(vocab_info=vocab_info, reads=reads)
        else:
            self.embedding = embedding.build(
                vocabulary_size=vocab_info.size, pad_idx=vocab_info.pad_idx
            )
            dim = embedding.dim + (0 if dictionary is None else dictionary.out_dim)
            self.encoder = encoder.build(dim=dim)
        chosen = pooling or encoder.default_pooling()
        self.pooling: Pooling = chosen.build(dim=self.encoder.out_dim)
        self.out_dim = self.pooling.out_dim

    @override
    def forward(self, text: Tensor, lengths: Tensor, dictionary: Tensor | None = None) -> Tensor:
        """*Shape:* ids :math:`(B,T)`, lengths :math:`(B)`, found :math:`(B,N,3)`: :math:`(B,H)`."""
        check_texts(text, several=False)
        x = text if self.embedding is None else self.embedding(text)
        if self.dictionary is not None and dictionary is not None:
            x = torch.cat([x, self.dictionary(dictionary, text.shape[1])], dim=-1)
        return self._pooled(self.encoder(x, lengths), lengths)

    def each(self, texts: Tensor) -> tuple[Tensor, Tensor]:
        """A vector of each text of lists, each by itself, zero at padding; how many there are.

        *Shape:* :math:`(B,N,T)` to :math:`(B,N,H)` and :math:`(B)`.
        """
        check_texts(texts, several=True)
        lengths = (texts != self.pad_idx).sum(dim=-1)
        real = lengths > 0
        # A graph has no number of texts that only data can tell; a device would be waited for.
        if torch.compiler.is_exporting() or texts.device.type != "cpu":
            every: Tensor = self(texts.flatten(0, 1), lengths.flatten().clamp(min=1))
            every = every.view(*real.shape, self.out_dim).masked_fill(~real[..., None], 0.0)
            return every, real.sum(dim=1)
        found = self(texts[real], lengths[real])
        out = found.new_zeros(*real.shape, self.out_dim).index_put((real,), found)
        return out, real.sum(dim=1)

    def read_pairs(
        self, text1: Tensor, lengths1: Tensor, text2: Tensor, lengths2: Tensor
    ) -> Tensor:
        """One vector of two texts that a pretrained encoder reads as one; shapes as there."""
        assert isinstance(self.encoder, PretrainedEncoder)
        return self._pooled(*self.encoder.pairs(text1, lengths1, text2, lengths2))

    def recorded(self, config: C) -> C:
        return dataclasses.replace(config, encoder=self.encoder.config)

    def _pooled(self, states: Tensor, lengths: Tensor) -> Tensor:
        out: Tensor = self.pooling(states, real_tokens(states, lengths))
        return out


def check_texts(ids: Tensor, *, several: bool) -> None:
    """Refuses lists of texts for a model that reads one text, or one text for one of lists."""
    if ids.dim() != 2 + several:
        reads, gives = ("a list of texts", "one text")[:: 1 if several else -1]
        raise UserError(
            f"The model reads {reads} of each row, but the task gives it {gives}. Lists take both "
            "task.max_texts and a model of them: model.sequence.type=lstm of a classifier, or "
            "model.type=text_tagger."
        )


class TextSequence(nn.Module):
    """One vector of a list of texts: an encoder reads the vectors that ``text`` makes of each.

    Source: Yang et al. 2016, "Hierarchical Attention Networks for Document Classification", in
    which both are recurrent, with attention.
    """

    def __init__(self, text: TextVector, encoder: SequenceEncoder.Config) -> None:
        super().__init__()
        self.text, self.encoder = text, sequence_encoder(encoder, dim=text.out_dim)
        self.pooling: Pooling = encoder.default_pooling().build(dim=self.encoder.out_dim)
        self.out_dim = self.pooling.out_dim

    @override
    def forward(
        self, texts: Tensor, lengths: Tensor | None = None, dictionary: Tensor | None = None
    ) -> Tensor:
        """*Shape:* ids :math:`(B,N,T)` to :math:`(B,H)`; the others are of one text."""
        vectors, counts = self.text.each(texts)
        states = self.encoder(vectors, counts)
        out: Tensor = self.pooling(states, real_tokens(states, counts))
        return out

    def recorded(self, config: C) -> C:
        return self.text.recorded(config)


def sequence_encoder(encoder: SequenceEncoder.Config, *, dim: int) -> SequenceEncoder:
    """The encoder of the vectors of texts."""
    if encoder.reads_ids:
        raise UserError(
            "model.sequence reads the vectors of texts, and not tokens: it cannot be a pretrained "
            "encoder. That reads each text as model.encoder; set model.sequence.type=lstm."
        )
    made: SequenceEncoder = encoder.build(dim=dim)
    return made


def score_layers(size: int, hidden: Sequence[int], out: int, *, dropout: float) -> nn.Sequential:
    """Layers after a text's vector, with a ReLU between two and dropout before each.

    Example:
        >>> layers = score_layers(4, [3], 2, dropout=0.1)
        >>> [type(layer).__name__ for layer in layers]
        ['Dropout', 'Linear', 'ReLU', 'Dropout', 'Linear']
    """
    layers: list[nn.Module] = []
    for before, following in itertools.pairwise([size, *hidden, out]):
        layers += [Dropout(dropout), nn.Linear(before, following), nn.ReLU()]
    return nn.Sequential(*layers[:-1])


class TextVectorConfig(BaseConfig):
    """Settings of models that make a vector of a text."""

    embedding: WordEmbedding.Config = WordEmbedding.Config()
    """The tokens' vectors."""
    encoder: SequenceEncoder.Config = CnnEncoder.Config()
    """What makes each token's vector know its text."""
    pooling: Pooling.Config | None = None
    """How a text's vectors become one; null is the encoder's own: the maximum for cnn,
    attention for lstm, else the mean."""

    def text_vector(self, tokenizer: HasVocabInfo, **more: Any) -> TextVector:
        """Makes the vector of a text; ``more`` are the other arguments of :class:`TextVector`."""
        parts = self.embedding, self.encoder, self.pooling
        return TextVector(*parts, vocab_info=tokenizer.vocab_info, **more)


class TextsConfig(TextVectorConfig):
    """Settings of what reads a list of texts."""

    sequence: SequenceEncoder.Config = LstmEncoder.Config()
    """What makes each text's vector know the texts around it; they are pooled as by an encoder."""


class TextConfig(TextVectorConfig):
    """Settings of models that give a text's vector scores."""

    hidden: tuple[int, ...] = ()
    """Features of layers between the text's vector and the scores, each with a ReLU."""
    dropout: float = 0.4
    """Probability of dropping a feature before each layer after the pooling, in training."""

    def __post_init__(self) -> None:
        if any(size < 1 for size in self.hidden):
            raise UserError(
                f"model.hidden must be sizes of at least 1, but is {list(self.hidden)}."
            )
        require(self, "model", shares=["dropout"])


class TextFeatures(TypedDict, total=False):
    """What a recipe may have beside a text."""

    dense: HasDim | None
    dictionary: HasSize | None
    ngrams: HasNgrams | None


class TextScores(Component, nn.Module):
    """Base of models that give a text some numbers."""

    class Config(TextConfig):
        dictionary_embedding: DictionaryEmbedding.Config = DictionaryEmbedding.Config()
        """The vectors of words' kinds, in a recipe that has an ingredient ``dictionary``."""
        sequence: SequenceEncoder.Config | None = None
        """What reads the vectors of a row's texts, if each row is a list of texts
        (``task.max_texts``); it pools them as an encoder does. null: a row is one text."""

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasVocabInfo,
        labels: Sized,
        dense: HasDim | None = None,
        dictionary: HasSize | None = None,
        ngrams: HasNgrams | None = None,
    ) -> None:
        nn.Module.__init__(self)
        kinds, out = config.dictionary_embedding, len(labels)
        known = None if dictionary is None else kinds.build(size=dictionary.size)
        text = config.text_vector(tokenizer, dictionary=known)
        self.text: TextVector | TextSequence = text
        if config.sequence is not None:
            self.text = TextSequence(text, config.sequence)
        self.config = self.text.recorded(config)
        size = self.text.out_dim + (0 if dense is None else dense.dim)
        self.scores = score_layers(size, config.hidden, out, dropout=config.dropout)
        self.wide = None if ngrams is None else WideScores(ngrams, out)

    @override
    def forward(
        self,
        text: Tensor,
        lengths: Tensor,
        dense: Tensor | None = None,
        *,
        dictionary: Tensor | None = None,
        ngrams: Tensor | None = None,
    ) -> Tensor:
        """Unnormalized scores, :math:`(B,L)`, of texts and what the model was made for beside them.

        *Shape:* ids of tokens :math:`(B,T)`, with ``model.sequence`` of each text :math:`(B,N,T)`;
        real ones of each row, 1 or more, :math:`(B)`; numbers of each row :math:`(B,N)`; what is
        known of words by a dictionary, as
        :class:`~textmill.models.layers.word_embeddings.DictionaryEmbedding` takes it,
        :math:`(B,K,3)`; ids of n-grams :math:`(B,G)`.
        """
        return self.scored(self.text(text, lengths, dictionary), dense=dense, ngrams=ngrams)

    def scored(
        self, vector: Tensor, *, dense: Tensor | None = None, ngrams: Tensor | None = None
    ) -> Tensor:
        """The scores of texts by their vectors, :math:`(B,H)`; the rest as in :meth:`forward`."""
        if dense is not None:
            vector = torch.cat([vector, dense], dim=1)
        out: Tensor = self.scores(vector)
        if self.wide is not None and ngrams is not None:
            out = out + self.wide(ngrams)
        return out


@registries.models.register("classifier")
class Classifier(TextScores):
    """Scores the labels of a text, and of the numbers beside it where rows have such.

    With its default encoder it is the network of Kim 2014; ``model.encoder.type=lstm`` is a BiLSTM
    with self-attention (Lin et al. 2017), ``averaging`` with ``model.hidden=[300]`` a deep
    averaging network (Iyyer et al. 2015), ``self_attention`` a Transformer encoder.
    """


@registries.models.register("regressor")
class Regressor(TextScores):
    """Gives a text, and the numbers beside it where rows have such, one number."""

    def __init__(
        self,
        config: TextScores.Config,
        *,
        tokenizer: HasVocabInfo,
        **beside: Unpack[TextFeatures],
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, labels=range(1), **beside)
