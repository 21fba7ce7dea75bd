"""The sentence encoder: a vector of each text, near those of texts that mean alike."""

import dataclasses

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.models import registries
from textmill.models.classifier import TextVector
from textmill.models.encoders.averaging import AveragingEncoder
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.poolings import Pooling
from textmill.models.vocabulary import HasVocabInfo
from textmill.runtime.pretrained import SentenceSettings, find_pretrained, sentence_settings


@registries.models.register("sentence_encoder")
class SentenceEncoder(Component, nn.Module):
    """A vector of a text: its tokens' vectors, pooled.

    All texts go through one encoder, so texts can be encoded before it is known what they are
    compared with.

    Source: Reimers and Gurevych 2019, "Sentence-BERT"; with its default encoder, which takes the
    mean of word vectors, Wieting et al. 2016, "Towards Universal Paraphrastic Sentence Embeddings".

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=10, pad_idx=0))
        >>> model = SentenceEncoder.Config().build(tokenizer=tokenizer)
        >>> text, lengths = torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1])
        >>> model(text, lengths).shape, model(text, lengths, text, lengths).shape
        (torch.Size([2, 1, 100]), torch.Size([2, 2, 100]))
    """

    class Config(BaseConfig):
        """Settings of the model."""

        embedding: WordEmbedding.Config = WordEmbedding.Config()
        """The tokens' vectors."""
        encoder: SequenceEncoder.Config = AveragingEncoder.Config()
        """What makes each token's vector know its text."""
        pooling: Pooling.Config | None = None
        """How a text's vectors become one; null is as a pretrained encoder's folder says it
        (``modules.json``), else the encoder's own: for most the mean."""
        normalize: bool | None = None
        """Whether a vector is divided by its length; null is as that folder says, else true."""

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        pooling, normalize = _said(config)
        self.text = TextVector(
            config.embedding, config.encoder, pooling, vocab_info=tokenizer.vocab_info
        )
        self.config = dataclasses.replace(
            config, encoder=self.text.encoder.config, pooling=pooling, normalize=normalize
        )

    @override
    def forward(self, *texts: Tensor) -> Tensor:
        """Makes vectors.

        Args:
            texts: Token ids :math:`(B,T)` and lengths :math:`(B)`, 1 or more, of each row's first
                text, then of its second one, and so on: :math:`K` of them.

        Returns:
            *Shape:* :math:`(B,K,H)`.
        """
        pairs = zip(texts[::2], texts[1::2], strict=True)
        vectors = torch.stack([self.text(*pair) for pair in pairs], dim=1)
        return F.normalize(vectors, dim=-1) if self.config.normalize else vectors


def _said(config: SentenceEncoder.Config) -> tuple[Pooling.Config | None, bool]:
    """The pooling, and whether vectors are normalized: as it is set, else as the folder says.

    A run has its own architecture and needs no folder: there both are set.
    """
    pooling, normalize, encoder = config.pooling, config.normalize, config.encoder
    if (pooling is None or normalize is None) and isinstance(encoder, PretrainedEncoder.Config):
        told = _folder_says(encoder)
        if told is not None:
            pooling = pooling or registries.poolings.get(told.pooling).Config()
            normalize = told.normalize if normalize is None else normalize
    return pooling or encoder.default_pooling(), normalize is not False


def _folder_says(encoder: PretrainedEncoder.Config) -> SentenceSettings | None:
    if encoder.architecture is not None or not encoder.path:
        return None
    return sentence_settings(find_pretrained(encoder.path, revision=encoder.revision))
