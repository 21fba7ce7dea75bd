"""Base of models that read a context for the answer to a question."""

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.limits import require
from weft.errors import UserError
from weft.models.answer_spans import SpanScores
from weft.models.layers.characters import CharacterCnn
from weft.models.layers.dropout import Dropout
from weft.models.layers.words import WordEmbedding, hide_words
from weft.models.vocabulary import HasWordVocabInfo, VocabInfo

__all__ = ["LEVELS", "Reader", "Texts", "refuse_longer"]

LEVELS = 4
"""How a word of the context can match one of the question, from not at all to letter by letter."""


class Texts(NamedTuple):
    """Padded texts of one place at least."""

    vectors: Tensor
    """Of their words. *Shape:* :math:`(B,T,D)`."""
    lengths: Tensor
    """Real words of each row; 1 of an empty text, a word that is padding. *Shape:* :math:`(B)`."""


class Reader(Component, nn.Module):
    """Base of readers: where in a context the answer to a question begins, and where it ends.

    Attributes:
        no_answer: Whether it also says how likely there is none.
    """

    class Config(BaseConfig):
        """Settings that all readers have."""

        embedding: WordEmbedding.Config = WordEmbedding.Config()
        """The words' vectors."""
        character_cnn: CharacterCnn.Config = CharacterCnn.Config()
        """The vectors made of their characters, in a recipe that has an ingredient
        ``characters``."""
        dropout: float = 0.4
        """Probability of dropping a feature of a word's vector, before and behind the encoders, in
        training."""
        word_dropout: float = 0.0
        """Probability of taking a word for the unknown one in training: what is left of it are its
        characters, its neighbours, and whether the question has it."""
        matches: bool = True
        """Whether a word of the context is told how far it is one of the question's."""
        no_answer: bool = False
        """Whether a question can have no answer in its context."""

        def __post_init__(self) -> None:
            """Refuses what is no probability."""
            require(self, "model", shares=["dropout", "word_dropout"])

    config: Any

    def __init__(
        self, config: Config, *, tokenizer: HasWordVocabInfo, characters: VocabInfo | None = None
    ) -> None:
        nn.Module.__init__(self)
        self.config, info = config, tokenizer.vocab_info
        self.no_answer = config.no_answer
        self.pad_idx, self.unk_idx = info.pad_idx, info.unk_idx
        self.embedding: WordEmbedding = config.embedding.build(
            vocabulary_size=info.size, pad_idx=info.pad_idx
        )
        self.dim = config.embedding.dim
        self.characters: CharacterCnn | None = None
        if characters is not None:
            self.characters = config.character_cnn.build(
                size=characters.size, pad_idx=characters.pad_idx
            )
            self.dim += self.characters.out_dim
        self.dropout = Dropout(config.dropout)

    @abstractmethod
    def check_lengths(self, question: int, context: int) -> None:
        """Refuses texts that may be longer than the encoders take: the first such would fail.

        Args:
            question: Most tokens of a question.
            context: Most tokens of a window of a context.

        Raises:
            UserError: An encoder takes fewer.
        """

    @abstractmethod
    def read(self, question: Texts, context: Texts, matches: Tensor | None) -> SpanScores:
        """Scores the words of contexts.

        Args:
            question: The questions' words.
            context: The contexts' words.
            matches: Features of each word of the context, or None where ``model.matches`` is false.
                *Shape:* :math:`(B,T,3)`.
        """

    @override
    def forward(
        self,
        question: Tensor,
        question_lengths: Tensor,
        context: Tensor,
        context_lengths: Tensor,
        matches: Tensor,
        question_characters: Tensor | None = None,
        context_characters: Tensor | None = None,
    ) -> SpanScores:
        """Scores the words of contexts as beginnings and ends of the answers to questions.

        Args:
            question: Ids. *Shape:* :math:`(B,Q)`.
            question_lengths: Real words of each question, 0 or more. *Shape:* :math:`(B)`.
            context: Ids. *Shape:* :math:`(B,T)`.
            context_lengths: Real words of each context, 0 or more. *Shape:* :math:`(B)`.
            matches: How far each word of the context is one of the question's, from 0 to 3; see
                :class:`~weft.text.columns.question.MatchesColumn`. *Shape:* :math:`(B,T)`.
            question_characters: Ids, where the model was made for such. *Shape:* :math:`(B,Q,C)`.
            context_characters: Likewise. *Shape:* :math:`(B,T,C)`.
        """
        asked = self._texts(question, question_lengths, question_characters)
        given = self._texts(context, context_lengths, context_characters)
        features = None
        if self.config.matches:
            levels = F.pad(matches, (0, given.vectors.shape[1] - matches.shape[1]))
            features = F.one_hot(levels, LEVELS)[..., 1:].to(given.vectors.dtype)
        return self.read(asked, given, features)

    def _texts(self, ids: Tensor, lengths: Tensor, characters: Tensor | None) -> Texts:
        more = int(not ids.shape[1])
        ids = F.pad(ids, (0, more), value=self.pad_idx)
        if self.training and (share := self.config.word_dropout):
            ids = hide_words(ids, share, pad_idx=self.pad_idx, unk_idx=self.unk_idx)
        x = self.embedding(ids)
        if self.characters is not None and characters is not None:
            spelled = F.pad(characters, (0, 0, 0, more), value=self.characters.pad_idx)
            x = torch.cat([x, self.characters(spelled)], dim=-1)
        return Texts(self.dropout(x), lengths.clamp(min=1))


def refuse_longer(length: int, most: int | None, *, what: str, instead: str, where: str) -> None:
    """Refuses what may have more tokens than an encoder takes.

    Raises:
        UserError: It may.
    """
    if most is not None and length > most:
        raise UserError(
            f"{what} may have {length} tokens, but the module's encoder takes at most {most}. "
            f"Lower {instead}, or raise {where}.max_length."
        )
