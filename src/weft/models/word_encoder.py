"""What models of words begin with: vectors of words, what is known beside them, an encoder."""

from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.validators import require
from weft.models.encoders.lstm import LstmEncoder
from weft.models.encoders.sequence import SequenceEncoder
from weft.models.layers.dropout import Dropout
from weft.models.layers.word_embeddings import (
    AffixEmbedding,
    AffixInfo,
    CharacterCnn,
    DictionaryEmbedding,
    WordEmbedding,
    hide_words,
)
from weft.models.vocabulary import HasSize, HasWordVocabInfo, ModelVocabInfo

__all__ = ["WordEncoder"]


class WordEncoder(Component, nn.Module):
    """Base of models that say something of each word.

    From words, and from what is known of them beside their ids, it makes a vector of each that
    knows its text; a subclass scores what it likes with them.
    """

    class Config(BaseConfig):
        """Settings that such models have in common."""

        embedding: WordEmbedding.Config = WordEmbedding.Config()
        """The words' vectors."""
        character_cnn: CharacterCnn.Config = CharacterCnn.Config()
        """The vectors made of their characters, in a recipe that has an ingredient
        ``characters``."""
        affix_embedding: AffixEmbedding.Config = AffixEmbedding.Config()
        """The vectors of their beginnings, endings and shapes, in a recipe that has an ingredient
        ``affixes``."""
        dictionary_embedding: DictionaryEmbedding.Config = DictionaryEmbedding.Config()
        """The vectors of words' kinds, in a recipe that has an ingredient ``dictionary``."""
        encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """What makes each word's vector know its text."""
        dropout: float = 0.4
        """Probability of dropping a feature before and behind the encoder, in training."""
        word_dropout: float = 0.0
        """Probability of taking a word for the unknown one in training: what is left of it are its
        characters and its neighbours, as of a word that training never saw."""
        crf: bool = False
        """Whether a conditional random field scores whole sequences of labels."""
        constrained: bool = True
        """Whether the random field's answers keep to the scheme of labels that mark spans: none
        begins in its middle. Training does not look at it."""

        def __post_init__(self) -> None:
            """Refuses what is no probability."""
            require(self, "model", shares=["dropout", "word_dropout"])

    config: Any

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasWordVocabInfo,
        characters: ModelVocabInfo | None = None,
        affixes: AffixInfo | None = None,
        dictionary: HasSize | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.config, info = config, tokenizer.vocab_info
        self.pad_idx, self.unk_idx = info.pad_idx, info.unk_idx
        self.embedding: WordEmbedding = config.embedding.build(
            vocabulary_size=info.size, pad_idx=self.pad_idx
        )
        self.characters: CharacterCnn | None = None
        if characters is not None:
            self.characters = config.character_cnn.build(
                size=characters.size, pad_idx=characters.pad_idx
            )
        self.affixes: AffixEmbedding | None = None
        if affixes is not None:
            self.affixes = config.affix_embedding.build(
                size=affixes.size, pad_idx=affixes.pad_idx, length=affixes.length
            )
        self.dictionary: DictionaryEmbedding | None = None
        if dictionary is not None:
            self.dictionary = config.dictionary_embedding.build(size=dictionary.size)
        beside = (self.characters, self.affixes, self.dictionary)
        dim = config.embedding.dim + sum(0 if layer is None else layer.out_dim for layer in beside)
        self.encoder: SequenceEncoder = config.encoder.build(dim=dim)
        self.dropout = Dropout(config.dropout)

    def states(
        self,
        words: Tensor,
        lengths: Tensor,
        *,
        characters: Tensor | None = None,
        affixes: Tensor | None = None,
        dictionary: Tensor | None = None,
    ) -> Tensor:
        """A vector of each word that knows its text.

        Args:
            words: Ids. *Shape:* :math:`(B,T)`.
            lengths: Real words of each row, 0 or more. *Shape:* :math:`(B)`.
            characters: Ids, where the model was made for such. *Shape:* :math:`(B,T,C)`.
            affixes: Ids, where the model was made for such. *Shape:* :math:`(B,T,A)`.
            dictionary: What is known of words, as
                :class:`~weft.models.layers.word_embeddings.DictionaryEmbedding` takes it, where the
                model was made for such. *Shape:* :math:`(B,N,3)`.

        Returns:
            Anything at padding. Texts without any word are read as one that is padding.
            *Shape:* :math:`(B,T,H)`, :math:`(B,1,H)` of such texts.
        """
        empty = not words.shape[1]
        words = F.pad(words, (0, 1), value=self.pad_idx) if empty else words
        x = [self.embedding(self._hidden(words))]
        for layer, given in ((self.characters, characters), (self.affixes, affixes)):
            if layer is not None and given is not None:
                pad = layer.pad_idx
                x.append(layer(F.pad(given, (0, 0, 0, 1), value=pad) if empty else given))
        if self.dictionary is not None and dictionary is not None:
            x.append(self.dictionary(dictionary, words.shape[1]))
        # No encoder takes a text without a word: what it says of one is at padding.
        states: Tensor = self.encoder(self.dropout(torch.cat(x, dim=-1)), lengths.clamp(min=1))
        return states

    def _hidden(self, words: Tensor) -> Tensor:
        """Ids of which some are the unknown word's, in training. *Shape:* :math:`(B,T)`."""
        share = self.config.word_dropout
        if not (self.training and share):
            return words
        return hide_words(words, share, pad_idx=self.pad_idx, unk_idx=self.unk_idx)
