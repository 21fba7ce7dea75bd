"""A reader whose encoder was trained before, on much text: question and context are one text."""

from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.encoders.pretrained import PretrainedEncoder, framed_words
from textmill.models.encoders.sequence import refuse_vectors
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.readers.answer_spans import SpanScores
from textmill.models.vocabulary import HasVocabInfo, IdTable

MARKS = 4
"""Marks of a question with its context, at most: one before each, and one at the end."""


@registries.models.register("pretrained_reader")
class PretrainedReader(Component, nn.Module):
    """Finds answers by a pretrained encoder that reads ``[CLS] question [SEP] context [SEP]``.

    Each token of the context has two scores, of beginning and of ending the answer; that there is
    none is scored by the vector of the first mark. A token is what the encoder's own tokenizer
    makes of each word by itself, as if a space were before it.

    Source: Devlin et al. 2019, "BERT", section 4.2.
    """

    class Config(BaseConfig):
        encoder: PretrainedEncoder.Config = PretrainedEncoder.Config()
        """What reads; set its ``path``."""
        dropout: float = 0.1
        """Probability of dropping a feature of a token's vector before its scores, in training."""
        no_answer: bool = False
        """Whether a question can have no answer in its context."""

        def __post_init__(self) -> None:
            require(self, "model", shares=["dropout"])

    config: Any

    def __init__(
        self, config: Config, *, tokenizer: HasVocabInfo, characters: IdTable | None = None
    ) -> None:
        nn.Module.__init__(self)
        refuse_vectors(WordEmbedding.Config(), beside=(characters,))
        self.vocab_info = tokenizer.vocab_info
        self.encoder: PretrainedEncoder = config.encoder.build(vocab_info=self.vocab_info)
        self.config = replace(config, encoder=self.encoder.config)
        self.no_answer = config.no_answer
        """Whether it also says how likely there is none."""
        self.dropout = Dropout(config.dropout)
        self.scores = nn.Linear(self.encoder.out_dim, 2)
        if config.no_answer:
            self.none = nn.Linear(self.encoder.out_dim, 1)

    def check_lengths(self, question: int, context: int) -> None:
        """Refuses texts that may be longer than the encoder has positions for."""
        most, wanted = self.encoder.max_length, question + context + MARKS
        if most is not None and wanted > most:
            raise UserError(
                f"A question with a window of its context may have {wanted} tokens, {MARKS} marks "
                f"among them, but the module's encoder takes at most {most}. Lower task.max_length "
                "or task.max_question_length."
            )

    @override
    def forward(
        self,
        question: Tensor,
        question_lengths: Tensor,
        context: Tensor,
        context_lengths: Tensor,
        matches: Tensor | None = None,
    ) -> SpanScores:
        """As :meth:`~textmill.models.readers.reader.Reader.forward`, of ids without marks.

        It does not look at ``matches``: the encoder sees which tokens of both texts are alike.
        """
        asked = self._framed(question, question_lengths)
        given = self._framed(context, context_lengths)
        states, lengths = self.encoder.pairs(*asked, *given)
        first = lengths - 1 - context_lengths.to(lengths.device)  # a mark ends the context
        place = torch.arange(max(context.shape[1], 1), device=states.device)
        at = (first.to(states.device)[:, None] + place).clamp(max=states.shape[1] - 1)
        read = states.gather(1, at[..., None].expand(-1, -1, states.shape[-1]))
        start, end = self.scores(self.dropout(read)).unbind(-1)
        none = self.none(self.dropout(states[:, 0]))[:, 0] if self.no_answer else None
        return SpanScores(start, end, none)

    def _framed(self, ids: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
        if not ids.shape[1]:
            ids = F.pad(ids, (0, 1), value=self.vocab_info.pad_idx)
        framed, counts, _ = framed_words(ids[..., None], lengths, self.vocab_info)
        return framed, counts
