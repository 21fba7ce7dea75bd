"""A model of intents and slots: one encoder for what a text wants and for what is marked in it."""

from collections.abc import Sequence, Sized

from torch import Tensor, nn
from typing_extensions import override

from weft.models import registries
from weft.models.crf import LinearChainCrf
from weft.models.encoders.sequence import real_tokens
from weft.models.layers.word_embeddings import AffixInfo
from weft.models.poolings import MaxPooling, Pooling
from weft.models.vocabulary import HasSize, HasWordVocabInfo, ModelVocabInfo
from weft.models.wide import HasCountedNgrams, WideScores
from weft.models.word_encoder import WordEncoder

__all__ = ["IntentSlotModel"]


@registries.models.register("intent_slot_model")
class IntentSlotModel(WordEncoder):
    """Scores a text's intents from its pooled vectors, and each word's tags from its own.

    Source: Liu and Lane 2016, "Attention-Based Recurrent Neural Network Models for Joint Intent
    Detection and Slot Filling" (a shared BiLSTM); ``model.encoder.type=self_attention`` is a
    Transformer encoder.

    Attributes:
        crf: What joins the tags' scores to those of sequences; None: each word for itself.

    Example:
        >>> import torch
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=49, pad_idx=0, unk_idx=1))
        >>> given = {"tokenizer": tokenizer, "labels": range(8), "slots": list("abcdefg")}
        >>> model = IntentSlotModel.Config().build(**given)
        >>> intents, tags = model(torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1]))
        >>> intents.shape, tags.shape
        (torch.Size([2, 8]), torch.Size([2, 3, 7]))
        >>> sum(p.numel() for p in model.parameters())
        40179
    """

    class Config(WordEncoder.Config):
        """Settings of the model."""

        pooling: Pooling.Config = MaxPooling.Config()
        """How the words' vectors become the text's."""

    config: Config
    crf: LinearChainCrf | None

    def __init__(
        self,
        config: Config,
        *,
        tokenizer: HasWordVocabInfo,
        labels: Sized,
        slots: Sequence[str],
        characters: ModelVocabInfo | None = None,
        affixes: AffixInfo | None = None,
        dictionary: HasSize | None = None,
        ngrams: HasCountedNgrams | None = None,
    ) -> None:
        super().__init__(
            config,
            tokenizer=tokenizer,
            characters=characters,
            affixes=affixes,
            dictionary=dictionary,
        )
        self.pooling: Pooling = config.pooling.build(dim=self.encoder.out_dim)
        self.intents = nn.Linear(self.pooling.out_dim, len(labels))
        self.wide = None if ngrams is None else WideScores(ngrams, len(labels))
        self.tags = nn.Linear(self.encoder.out_dim, len(slots))
        self.crf = LinearChainCrf(slots, constrained=config.constrained) if config.crf else None

    @override
    def forward(
        self, words: Tensor, lengths: Tensor, *, ngrams: Tensor | None = None, **beside: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Scores intents, and the tags of each word by itself; ``crf`` makes sequences of them.

        Args:
            words: Ids. *Shape:* :math:`(B,T)`.
            lengths: Real words of each row, 0 or more. *Shape:* :math:`(B)`.
            ngrams: Ids of the text's n-grams, where the model was made for such: they add to the
                scores of intents. *Shape:* :math:`(B,G)`.
            beside: What stands beside words, where the model was made for such, as
                :meth:`states` takes it.

        Returns:
            Unnormalized scores of intents :math:`(B,I)` and, anything at padding, of tags
            :math:`(B,T,L)`.
        """
        states = self.states(words, lengths, **beside)
        pooled = self.pooling(states, real_tokens(states, lengths.clamp(min=1)))
        intents: Tensor = self.intents(self.dropout(pooled))
        if self.wide is not None and ngrams is not None:
            intents = intents + self.wide(ngrams)
        tags: Tensor = self.tags(self.dropout(states))
        return intents, tags[:, : words.shape[1]]
