"""A model that scores the sentences of a text by how much of it they say."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.validators import require
from weft.errors import UserError
from weft.models import registries
from weft.models.encoders.pretrained import PretrainedEncoder
from weft.models.encoders.sequence import SequenceEncoder
from weft.models.layers.dropout import Dropout
from weft.models.vocabulary import HasFramedVocabInfo

__all__ = ["SentenceScorer"]


@registries.models.register("sentence_scorer")
class SentenceScorer(Component, nn.Module):
    """Scores each sentence of a text from its first piece, which an encoder makes know the text.

    Source: Liu and Lapata 2019, "Text Summarization with Pretrained Encoders" (BertSumExt); a mark
    before each sentence, as there, is not put in, so that the encoder reads a text as it was
    trained to.
    """

    class Config(BaseConfig):
        """Settings of the model."""

        encoder: SequenceEncoder.Config = PretrainedEncoder.Config()
        """What reads; set its ``path``."""
        dropout: float = 0.1
        """Probability of dropping a feature of a sentence's vector, in training."""

        def __post_init__(self) -> None:
            require(self, "model", shares=["dropout"])
            if not self.encoder.reads_ids:
                raise UserError(
                    "model.encoder must read the pieces of sentences, as "
                    f"model.encoder.type=pretrained does; a {type(self.encoder).__qualname__} "
                    "reads vectors."
                )

    def __init__(self, config: Config, *, pieces: HasFramedVocabInfo) -> None:
        nn.Module.__init__(self)
        self.encoder: SequenceEncoder = config.encoder.build(
            vocab_info=pieces.vocab_info, reads="words"
        )
        self.config = replace(config, encoder=self.encoder.config)
        self.pad_idx = pieces.vocab_info.pad_idx
        self.dropout = Dropout(config.dropout)
        self.scores = nn.Linear(self.encoder.out_dim, 1)

    @override
    def forward(self, sentences: Tensor, lengths: Tensor) -> Tensor:
        """Scores sentences.

        Args:
            sentences: Ids of their pieces. *Shape:* :math:`(B,N,P)`.
            lengths: Sentences of each text, 0 or more. *Shape:* :math:`(B)`.

        Returns:
            Unnormalized scores, anything at padding. *Shape:* :math:`(B,N)`.
        """
        if not sentences.shape[1]:
            sentences = F.pad(sentences, (0, 0, 0, 1), value=self.pad_idx)
            return self.forward(sentences, lengths)[:, :0]
        out: Tensor = self.scores(self.dropout(self.encoder(sentences, lengths)))
        return torch.squeeze(out, -1)
