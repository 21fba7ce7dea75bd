"""Models that say something of each word: a tagger, and one of intents and slots."""

from collections.abc import Sequence, Sized
from dataclasses import replace
from typing import TypedDict, Unpack

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.classifier import (
    TextsConfig,
    TextSequence,
    check_texts,
    sequence_encoder,
)
from textmill.models.crf import LinearChainCrf
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.sequence import SequenceEncoder, real_tokens, refuse_vectors
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.word_embeddings import (
    AffixEmbedding,
    AffixInfo,
    DictionaryEmbedding,
    WordReader,
    one_word,
)
from textmill.models.ngrams import HasNgrams
from textmill.models.poolings import MaxPooling, Pooling
from textmill.models.vocabulary import HasDim, HasSize, HasVocabInfo, IdTable
from textmill.models.wide import FittedScores


class WordFeatures(TypedDict, total=False):
    """What a recipe may have beside the words."""

    characters: IdTable | None
    affixes: AffixInfo | None
    pieces: HasVocabInfo | None
    dictionary: HasSize | None
    dense: HasDim | None


class WordEncoder(WordReader):
    """Base of models that say something of each word.

    From words, and from what is known of them beside their ids, it makes a vector of each that
    knows its text; a subclass scores what it likes with them.
    """

    class Config(WordReader.Config):
        affix_embedding: AffixEmbedding.Config = AffixEmbedding.Config()
        """The vectors of their beginnings, endings and shapes, in a recipe that has an ingredient
        ``affixes``."""
        dictionary_embedding: DictionaryEmbedding.Config = DictionaryEmbedding.Config()
        """The vectors of words' kinds, in a recipe that has an ingredient ``dictionary``."""
        encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """The network that puts the context of each word into its vector."""
        dropout: float = 0.4
        """Probability of dropping a feature before and after the encoder, in training."""
        word_dropout: float = 0.0
        """Probability of taking a word for the unknown one in training: what is left of it are its
        characters and its neighbours, as of a word that training never saw."""

        def __post_init__(self) -> None:
            require(self, "model", shares=["dropout", "word_dropout"])

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasVocabInfo,
        characters: IdTable | None = None,
        affixes: AffixInfo | None = None,
        pieces: HasVocabInfo | None = None,
        dictionary: HasSize | None = None,
        context: TextSequence | None = None,
        dense: HasDim | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.config, self.context = config, context
        self.dropout = Dropout(config.dropout)
        self.encoder: SequenceEncoder
        self.embedding = None
        if config.encoder.reads_ids:
            if pieces is None:
                raise UserError(
                    "model.encoder reads the pieces of words, but the recipe has no ingredient "
                    "pieces. Add pieces = PretrainedPieces.Config(), or start from "
                    "tagging/pretrained or joint/pretrained."
                )
            self.pad_idx = tokenizer.vocab_info.pad_idx
            others = (characters, affixes, dictionary, context, dense)
            refuse_vectors(config.embedding, beside=others)
            self.encoder = config.encoder.build(vocab_info=pieces.vocab_info, reads="words")
            self.config = replace(config, encoder=self.encoder.config)
            return
        dim = self.make_vectors(config, tokenizer.vocab_info, characters)
        self.affixes: AffixEmbedding | None = None
        if affixes is not None:
            self.affixes = config.affix_embedding.build(
                size=affixes.size, pad_idx=affixes.pad_idx, length=affixes.length
            )
        self.dictionary: DictionaryEmbedding | None = None
        if dictionary is not None:
            self.dictionary = config.dictionary_embedding.build(size=dictionary.size)
        more = (self.affixes, self.dictionary, context)
        dim += sum(each.out_dim for each in more if each is not None)
        self.encoder = config.encoder.build(dim=dim if dense is None else dim + dense.dim)

    def states(
        self,
        words: Tensor,
        lengths: Tensor,
        *,
        characters: Tensor | None = None,
        affixes: Tensor | None = None,
        pieces: Tensor | None = None,
        dictionary: Tensor | None = None,
        context: Tensor | None = None,
        dense: Tensor | None = None,
    ) -> Tensor:
        """A vector of each word that knows its text; the others where the model was made for them.

        Texts without any word are read as one that is padding; at padding stands anything.
        *Shape:* ids of words :math:`(B,T)`, real ones of each row, 0 or more, :math:`(B)`; ids of
        characters, affixes and pieces, :math:`(B,T,*)`; what is known of words by a dictionary, as
        :class:`~textmill.models.layers.word_embeddings.DictionaryEmbedding` takes it,
        :math:`(B,N,3)`; ids of the texts around it :math:`(B,N,W)`; numbers of each word
        :math:`(B,T,D)`; to :math:`(B,T,H)`, or
        :math:`(B,1,H)` of texts without a word.
        """
        check_texts(words, several=False)
        if (context is None) != (self.context is None):
            raise UserError(
                "task.context names the column of the texts around a text, and model.context says "
                "how they are read, but the recipe has only one of them."
            )
        if self.embedding is None:
            assert pieces is not None
            read: Tensor = self.encoder(one_word(pieces, self.pad_idx), lengths)
            return read
        x = self.vectors(words, characters)
        if self.affixes is not None and affixes is not None:
            x.append(self.affixes(one_word(affixes, self.affixes.pad_idx)))
        if self.dictionary is not None and dictionary is not None:
            x.append(self.dictionary(dictionary, x[0].shape[1]))
        if self.context is not None and context is not None:
            around: Tensor = self.context(context)
            x.append(around[:, None].expand(-1, x[0].shape[1], -1))
        if dense is not None:
            x.append(one_word(dense if dense.ndim == 3 else dense[..., None], 0))
        # No encoder takes a text without a word: what it says of one is at padding.
        states: Tensor = self.encoder(self.dropout(torch.cat(x, dim=-1)), lengths.clamp(min=1))
        return states


class WordLabeler(WordEncoder):
    """Base of models that score the labels of words."""

    class Config(WordEncoder.Config):
        crf: bool = False
        """Whether a conditional random field scores whole sequences of labels."""
        constrained: bool = True
        """Whether the random field answers valid sequences of span labels alone, in which no span
        begins in its middle. It does not change training."""


@registries.models.register("tagger")
class Tagger(WordLabeler):
    """Scores the labels of each word of a text; with ``model.crf``, of whole sequences of labels.

    With characters and a conditional random field it is the network of Ma and Hovy 2016, without
    characters that of Huang, Xu and Yu 2015; ``model.encoder.type=self_attention`` is a Transformer
    encoder.
    """

    crf: LinearChainCrf | None

    def __init__(
        self,
        config: WordLabeler.Config,
        *,
        tokenizer: HasVocabInfo,
        labels: Sequence[str],
        **beside: Unpack[WordFeatures],
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, **beside)
        self.scores = nn.Linear(self.encoder.out_dim, len(labels))
        self.crf = LinearChainCrf(labels, constrained=config.constrained) if config.crf else None

    @override
    def forward(self, words: Tensor, lengths: Tensor, **beside: Tensor) -> Tensor:
        """Scores the labels of each word by itself; ``crf`` makes sequences of them.

        The arguments are those of :meth:`states`. *Shape:* :math:`(B,T,L)`, unnormalized, anything
        at padding.
        """
        states = self.states(words, lengths, **beside)
        out: Tensor = self.scores(self.dropout(states))[:, : words.shape[1]]
        return out


@registries.models.register("text_tagger")
class TextTagger(Component, nn.Module):
    """Scores the labels of each text of a list, such as the turns of a conversation.

    The vectors that are made of each text by itself are read by an encoder, ``sequence``; with
    ``model.crf`` a random field scores whole sequences of labels, as in a tagger of words.
    """

    class Config(TextsConfig):
        dropout: float = 0.4
        """Probability of dropping a feature before and after ``sequence``, in training."""
        crf: bool = False
        """Whether a conditional random field scores whole sequences of labels."""

        def __post_init__(self) -> None:
            require(self, "model", shares=["dropout"])

    crf: LinearChainCrf | None

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo, labels: Sequence[str]) -> None:
        nn.Module.__init__(self)
        self.text = config.text_vector(tokenizer)
        self.config = self.text.recorded(config)
        self.dropout = Dropout(config.dropout)
        self.encoder = sequence_encoder(config.sequence, dim=self.text.out_dim)
        self.scores = nn.Linear(self.encoder.out_dim, len(labels))
        self.crf = LinearChainCrf(labels) if config.crf else None

    @override
    def forward(self, words: Tensor, lengths: Tensor) -> Tensor:
        """*Shape:* ids of texts :math:`(B,N,T)`, texts of each row :math:`(B)`: :math:`(B,N,L)`."""
        vectors, counts = self.text.each(words)
        states = self.encoder(self.dropout(vectors), counts)
        out: Tensor = self.scores(self.dropout(states))
        return out


@registries.models.register("intent_slot_model")
class IntentSlotModel(WordLabeler):
    """Scores a text's intents from its pooled vectors, and each word's tags from its own.

    Of the recipe's n-grams a linear classifier, ``wide``, scores intents, to which the encoder adds
    its own scores.

    Source: Liu and Lane 2016, "Attention-Based Recurrent Neural Network Models for Joint Intent
    Detection and Slot Filling" (a shared BiLSTM); ``model.encoder.type=self_attention`` is a
    Transformer encoder.
    """

    class Config(WordLabeler.Config):
        pooling: Pooling.Config = MaxPooling.Config()
        """How the words' vectors become the text's."""
        context: TextsConfig | None = None
        """What makes a vector of the texts around it (``task.context``), such as the earlier turns
        of a conversation; it stands beside that of each word. null: a text stands alone."""

    crf: LinearChainCrf | None

    def __init__(  # one argument per ingredient
        self,
        config: Config,
        *,
        tokenizer: HasVocabInfo,
        labels: Sized,
        slots: Sequence[str],
        ngrams: HasNgrams | None = None,
        **beside: Unpack[WordFeatures],
    ) -> None:
        around = None
        if (read := config.context) is not None:
            around = TextSequence(read.text_vector(tokenizer), read.sequence)
        super().__init__(config, tokenizer=tokenizer, context=around, **beside)
        self.pooling: Pooling = config.pooling.build(dim=self.encoder.out_dim)
        self.intents = nn.Linear(self.pooling.out_dim, len(labels))
        self.wide = None if ngrams is None else FittedScores(ngrams, len(labels))
        self.tags = nn.Linear(self.encoder.out_dim, len(slots))
        self.crf = LinearChainCrf(slots, constrained=config.constrained) if config.crf else None

    @override
    def forward(
        self, words: Tensor, lengths: Tensor, *, ngrams: Tensor | None = None, **beside: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores intents, and the tags of each word by itself; ``crf`` makes sequences of them.

        The arguments are those of :meth:`states`, and ids of the text's ``ngrams``, :math:`(B,G)`,
        where the model was made for them: they add to the scores of intents.

        Returns:
            Unnormalized scores of intents :math:`(B,I)` and, anything at padding, of tags
            :math:`(B,T,L)`.
        """
        states = self.states(words, lengths, **beside)
        pooled = self.pooling(states, real_tokens(states, lengths.clamp(min=1)))
        intents: Tensor = self.intents(self.dropout(pooled))
        if self.wide is not None and ngrams is not None:
            intents = self.wide.added(intents, ngrams)
        tags: Tensor = self.tags(self.dropout(states))
        return intents, tags[:, : words.shape[1]]
