"""A tagger of words: vectors of words and their characters, an encoder, and scores of labels."""

from collections.abc import Sequence
from typing import Protocol

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import UserError
from weft.models.crf import LinearChainCrf
from weft.models.encoders.lstm import LstmEncoder
from weft.models.encoders.sequence import SequenceEncoder
from weft.models.layers.characters import CharacterCnn
from weft.models.layers.dropout import Dropout
from weft.models.layers.words import WordEmbedding
from weft.models.vocabulary import VocabInfo

__all__ = ["Tagger"]


class _VocabInfo(Protocol):
    @property
    def size(self) -> int: ...
    @property
    def pad_idx(self) -> int: ...
    @property
    def unk_idx(self) -> int: ...


class _HasVocabInfo(Protocol):
    @property
    def vocab_info(self) -> _VocabInfo: ...


@registries.models.register("tagger")
class Tagger(Component, nn.Module):
    """Scores the labels of each word of a text; with ``model.crf``, of whole sequences of labels.

    With characters and a conditional random field it is the network of Ma and Hovy 2016, without
    characters that of Huang, Xu and Yu 2015; ``model.encoder.type=self_attention`` is a Transformer
    encoder.

    Attributes:
        crf: What joins the scores of words to those of sequences; None: each word for itself.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0, unk_idx=1))
        >>> model = Tagger.Config(crf=True).build(tokenizer=tokenizer, labels="abcdef")
        >>> model(torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1])).shape
        torch.Size([2, 3, 6])
        >>> sum(p.numel() for p in model.parameters())
        39658
    """

    class Config(BaseConfig):
        """Settings of the tagger."""

        embedding: WordEmbedding.Config = WordEmbedding.Config()
        """The words' vectors."""
        character_cnn: CharacterCnn.Config = CharacterCnn.Config()
        """The vectors made of their characters, in a recipe that has an ingredient
        ``characters``."""
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
            for name in ("dropout", "word_dropout"):
                if not 0 <= (value := getattr(self, name)) < 1:
                    raise UserError(f"model.{name} must be from 0 to below 1, but is {value}.")

    config: Config
    crf: LinearChainCrf | None

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: _HasVocabInfo,
        labels: Sequence[str],
        characters: VocabInfo | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.config, info = config, tokenizer.vocab_info
        self.pad_idx, self.unk_idx = info.pad_idx, info.unk_idx
        self.embedding: WordEmbedding = config.embedding.build(
            vocabulary_size=info.size, pad_idx=info.pad_idx
        )
        dim = config.embedding.dim
        self.characters: CharacterCnn | None = None
        if characters is not None:
            self.characters = config.character_cnn.build(
                size=characters.size, pad_idx=characters.pad_idx
            )
            dim += self.characters.out_dim
        self.encoder: SequenceEncoder = config.encoder.build(dim=dim)
        self.dropout = Dropout(config.dropout)
        self.scores = nn.Linear(self.encoder.out_dim, len(labels))
        self.crf = LinearChainCrf(labels, constrained=config.constrained) if config.crf else None

    @override
    def forward(self, words: Tensor, lengths: Tensor, characters: Tensor | None = None) -> Tensor:
        """Scores the labels of each word by itself; ``crf`` makes sequences of them.

        Args:
            words: Ids. *Shape:* :math:`(B,T)`.
            lengths: Real words of each row, 0 or more. *Shape:* :math:`(B)`.
            characters: Ids, where the model was made for such. *Shape:* :math:`(B,T,C)`.

        Returns:
            Unnormalized scores, anything at padding. *Shape:* :math:`(B,T,L)`.
        """
        if not words.shape[1]:
            return self.scores.weight.new_zeros(len(words), 0, self.scores.out_features)
        x = self.embedding(self._hidden(words))
        if self.characters is not None and characters is not None:
            x = torch.cat([x, self.characters(characters)], dim=-1)
        # No encoder takes a text without a word; what it says of one is at padding.
        states = self.encoder(self.dropout(x), lengths.clamp(min=1))
        out: Tensor = self.scores(self.dropout(states))
        return out

    def _hidden(self, words: Tensor) -> Tensor:
        """Ids of which some are the unknown word's, in training. *Shape:* :math:`(B,T)`."""
        share = self.config.word_dropout
        if not (self.training and share):
            return words
        dropped = torch.rand(words.shape, device=words.device) < share
        return words.masked_fill(dropped & (words != self.pad_idx), self.unk_idx)
