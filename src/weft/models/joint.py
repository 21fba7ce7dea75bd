"""A model of intents and slots: one encoder for what a text wants and for what is marked in it."""

from collections.abc import Sequence, Sized

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import UserError
from weft.models.crf import LinearChainCrf
from weft.models.encoders.lstm import LstmEncoder
from weft.models.encoders.sequence import SequenceEncoder, real_tokens
from weft.models.layers.characters import CharacterCnn
from weft.models.layers.dropout import Dropout
from weft.models.layers.words import WordEmbedding
from weft.models.poolings import MaxPooling, Pooling
from weft.models.vocabulary import HasVocabInfo, VocabInfo

__all__ = ["IntentSlotModel"]


@registries.models.register("intent_slot_model")
class IntentSlotModel(Component, nn.Module):
    """Scores a text's intents from its pooled vectors, and each word's tags from its own.

    Source: Liu and Lane 2016, "Attention-Based Recurrent Neural Network Models for Joint Intent
    Detection and Slot Filling" (a shared BiLSTM); ``model.encoder.type=self_attention`` is a
    Transformer encoder.

    Attributes:
        crf: What joins the tags' scores to those of sequences; None: each word for itself.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0))
        >>> given = {"tokenizer": tokenizer, "labels": range(8), "slots": list("abcdefg")}
        >>> model = IntentSlotModel.Config().build(**given)
        >>> intents, tags = model(torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1]))
        >>> intents.shape, tags.shape
        (torch.Size([2, 8]), torch.Size([2, 3, 7]))
        >>> sum(p.numel() for p in model.parameters())
        40179
    """

    class Config(BaseConfig):
        """Settings of the model."""

        embedding: WordEmbedding.Config = WordEmbedding.Config()
        """The words' vectors."""
        character_cnn: CharacterCnn.Config = CharacterCnn.Config()
        """The vectors made of their characters, in a recipe that has an ingredient
        ``characters``."""
        encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """What makes each word's vector know its text."""
        pooling: Pooling.Config = MaxPooling.Config()
        """How the words' vectors become the text's."""
        dropout: float = 0.4
        """Probability of dropping a feature before and behind the encoder, in training."""
        crf: bool = False
        """Whether a conditional random field scores whole sequences of tags."""
        constrained: bool = True
        """Whether the random field's answers keep to the scheme of the tags: no slot begins in its
        middle. Training does not look at it."""

        def __post_init__(self) -> None:
            """Refuses what is no probability."""
            if not 0 <= self.dropout < 1:
                raise UserError(f"model.dropout must be from 0 to below 1, but is {self.dropout}.")

    config: Config
    crf: LinearChainCrf | None

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasVocabInfo,
        labels: Sized,
        slots: Sequence[str],
        characters: VocabInfo | None = None,
    ) -> None:
        nn.Module.__init__(self)
        self.config, info = config, tokenizer.vocab_info
        self.pad_idx = info.pad_idx
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
        self.pooling: Pooling = config.pooling.build(dim=self.encoder.out_dim)
        self.dropout = Dropout(config.dropout)
        self.intents = nn.Linear(self.pooling.out_dim, len(labels))
        self.tags = nn.Linear(self.encoder.out_dim, len(slots))
        self.crf = LinearChainCrf(slots, constrained=config.constrained) if config.crf else None

    @override
    def forward(
        self, words: Tensor, lengths: Tensor, characters: Tensor | None = None
    ) -> tuple[Tensor, Tensor]:
        """Scores intents, and the tags of each word by itself; ``crf`` makes sequences of them.

        Args:
            words: Ids. *Shape:* :math:`(B,T)`.
            lengths: Real words of each row, 0 or more. *Shape:* :math:`(B)`.
            characters: Ids, where the model was made for such. *Shape:* :math:`(B,T,C)`.

        Returns:
            Unnormalized scores of intents :math:`(B,I)` and, anything at padding, of tags
            :math:`(B,T,L)`.
        """
        length = words.shape[1]
        # No encoder takes a text without a word: such a one is read as one word that is padding.
        words = words if length else words.new_full((len(words), 1), self.pad_idx)
        lengths = lengths.clamp(min=1)
        x = self.embedding(words)
        if self.characters is not None and characters is not None:
            none = (len(words), 1, 1)
            spelled = characters if length else words.new_full(none, self.characters.pad_idx)
            x = torch.cat([x, self.characters(spelled)], dim=-1)
        states = self.encoder(self.dropout(x), lengths)
        pooled = self.pooling(states, real_tokens(states, lengths))
        intents: Tensor = self.intents(self.dropout(pooled))
        tags: Tensor = self.tags(self.dropout(states))
        return intents, tags[:, :length]
