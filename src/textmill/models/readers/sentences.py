"""A model that scores the sentences of a text by how much of it they say."""

from dataclasses import replace

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.models import registries
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.word_embeddings import CharacterCnn
from textmill.models.vocabulary import HasVocabInfo

SENTENCE_CNN = CharacterCnn.Config(dim=100, filters=100, widths=(1, 2, 3), dropout=0.2)


@registries.models.register("sentence_scorer")
class SentenceScorer(Component, nn.Module):
    """Scores each sentence of a text from a vector that an encoder makes know the text.

    That of a pretrained encoder, which reads all pieces of the text, is the vector of a sentence's
    first piece; any other reads a vector of each sentence, which a convolution makes of its words.

    Source: Liu and Lapata 2019, "Text Summarization with Pretrained Encoders" (BertSumExt); a mark
    before each sentence, as there, is not put in, so that the encoder reads a text as it was
    trained to. Cheng and Lapata 2016, "Neural Summarization by Extracting Sentences and Words": the
    convolution, and an LSTM over sentences.
    """

    class Config(BaseConfig):
        encoder: SequenceEncoder.Config = PretrainedEncoder.Config()
        """What reads; of a pretrained one set its ``path``."""
        sentence_cnn: CharacterCnn.Config | None = None
        """What makes a sentence's vector of its words, for an encoder that is not pretrained; null
        is one of 100 features a word and 100 filters over one, two and three words each."""
        dropout: float = 0.1
        """Probability of dropping a feature of a sentence's vector, in training."""

        def __post_init__(self) -> None:
            require(self, "model", shares=["dropout"])

    encoder: SequenceEncoder
    sentences: CharacterCnn | None

    def __init__(self, config: Config, *, pieces: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        info, self.sentences = pieces.vocab_info, None
        if config.encoder.reads_ids:
            self.encoder = config.encoder.build(vocab_info=info, reads="words")
        else:
            self.sentences = (config.sentence_cnn or SENTENCE_CNN).build(
                size=info.size, pad_idx=info.pad_idx
            )
            self.encoder = config.encoder.build(dim=self.sentences.out_dim)
        self.config, self.pad_idx = replace(config, encoder=self.encoder.config), info.pad_idx
        self.dropout = Dropout(config.dropout)
        self.scores = nn.Linear(self.encoder.out_dim, 1)

    @override
    def forward(self, sentences: Tensor, lengths: Tensor) -> Tensor:
        """Unnormalized scores of sentences, :math:`(B,N)`, anything at padding.

        *Shape:* ids of their pieces, :math:`(B,N,P)`, and sentences of each text, 0 or more,
        :math:`(B)`.
        """
        if not sentences.shape[1]:
            sentences = F.pad(sentences, (0, 0, 0, 1), value=self.pad_idx)
            return self.forward(sentences, lengths)[:, :0]
        if self.sentences is None:
            states = self.encoder(sentences, lengths)
        else:  # no such encoder takes a text without a sentence: what it says of one is at padding
            states = self.encoder(self.dropout(self.sentences(sentences)), lengths.clamp(min=1))
        out: Tensor = self.scores(self.dropout(states))
        return torch.squeeze(out, -1)
