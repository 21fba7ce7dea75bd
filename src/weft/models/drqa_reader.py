"""The document reader of DrQA: a context that looks at its question, and a vector of the latter."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.config import registries
from weft.models.answer_spans import SpanScores
from weft.models.encoders.lstm import LstmEncoder
from weft.models.encoders.sequence import SequenceEncoder, real_tokens
from weft.models.poolings import AttentionPooling
from weft.models.reader import LEVELS, Reader, Texts, refuse_longer
from weft.models.vocabulary import HasWordVocabInfo, VocabInfo

__all__ = ["DrqaReader"]


@registries.models.register("drqa_reader")
class DrqaReader(Reader):
    r"""Finds answers by a context's words :math:`p_i`, each with what it looks at in the question.

    .. math::
        a_{ij} &\propto \exp(\mathrm{relu}(W e_i) \cdot \mathrm{relu}(W q_j)) \\
        p &= \mathrm{encoder}([e_i; \textstyle\sum_j a_{ij} q_j; m_i]) \\
        s_i &= p_i \cdot W_s v, \quad t_i = p_i \cdot W_e v

    with the words' vectors :math:`e` and :math:`q`, how far each is one of the question's,
    :math:`m`, and a weighted mean of the encoded question, :math:`v`. There is no answer with a
    probability that the pooled :math:`p` have.

    Source: Chen et al. 2017, "Reading Wikipedia to Answer Open-Domain Questions", section 3.2,
    without tags of parts of speech, names and frequencies of terms.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=1418, pad_idx=0, unk_idx=1))
        >>> from weft.models.layers.words import WordEmbedding
        >>> words = WordEmbedding.Config(dim=50)
        >>> config = DrqaReader.Config(embedding=words, no_answer=True, matches=False)
        >>> model = config.build(tokenizer=tokenizer)
        >>> sum(p.numel() for p in model.parameters())
        141933
        >>> context, lengths = torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1])
        >>> scores = model(context[:, :1], lengths.clamp(max=1), context, lengths, context * 0)
        >>> scores.start.shape, scores.end.shape, scores.none.shape
        (torch.Size([2, 3]), torch.Size([2, 3]), torch.Size([2]))
    """

    class Config(Reader.Config):
        """Settings of the reader."""

        encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """What makes each word of the context know the others."""
        question_encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """Likewise of the question."""

    config: Config

    def __init__(
        self, config: Config, *, tokenizer: HasWordVocabInfo, characters: VocabInfo | None = None
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, characters=characters)
        self.align = nn.Linear(self.dim, self.dim)
        more = LEVELS - 1 if config.matches else 0
        self.encoder: SequenceEncoder = config.encoder.build(dim=2 * self.dim + more)
        self.question_encoder: SequenceEncoder = config.question_encoder.build(dim=self.dim)
        own, asked = self.encoder.out_dim, self.question_encoder.out_dim
        self.weight = nn.Linear(asked, 1)
        self.start, self.end = nn.Linear(asked, own), nn.Linear(asked, own)
        if config.no_answer:
            self.pooling: AttentionPooling = AttentionPooling.Config().build(dim=own)
            self.none = nn.Linear(own, 2)

    @override
    def check_lengths(self, question: int, context: int) -> None:
        refuse_longer(
            question,
            self.question_encoder.max_length,
            what="A question",
            instead="task.max_question_length",
            where="model.question_encoder",
        )
        refuse_longer(
            context,
            self.encoder.max_length,
            what="A window of a context",
            instead="task.max_length",
            where="model.encoder",
        )

    @override
    def read(self, question: Texts, context: Texts, matches: Tensor | None) -> SpanScores:
        asked = real_tokens(question.vectors, question.lengths)
        parts = [context.vectors, self._aligned(context.vectors, question.vectors, asked)]
        x = torch.cat(parts if matches is None else [*parts, matches], dim=-1)
        states = self.dropout(self.encoder(x, context.lengths))

        encoded = self.question_encoder(question.vectors, question.lengths)
        weights = self.weight(encoded).masked_fill(~asked[..., None], -torch.inf).softmax(dim=1)
        vector = self.dropout((weights * encoded.masked_fill(~asked[..., None], 0.0)).sum(dim=1))
        start, end = (
            torch.bmm(states, w(vector)[..., None])[..., 0] for w in (self.start, self.end)
        )
        if not self.no_answer:
            return SpanScores(start, end, None)
        has, none = self.none(self.pooling(states, real_tokens(states, context.lengths))).unbind(1)
        return SpanScores(start, end, none - has)

    def _aligned(self, context: Tensor, question: Tensor, asked: Tensor) -> Tensor:
        """What each word of the context sees of the question. *Shape:* :math:`(B,T,D)`."""
        keys, queries = F.relu(self.align(question)), F.relu(self.align(context))
        scores = torch.bmm(queries, keys.transpose(1, 2))
        weights = scores.masked_fill(~asked[:, None], -torch.inf).softmax(dim=-1)
        return torch.bmm(weights, question)
