"""A reader of question and context as one text, as BERT reads them."""

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.config import registries
from weft.models.answer_spans import SpanScores
from weft.models.encoders.self_attention import SelfAttentionEncoder
from weft.models.encoders.sequence import SequenceEncoder, real_tokens
from weft.models.poolings import MeanPooling
from weft.models.reader import LEVELS, Reader, Texts, refuse_longer
from weft.models.vocabulary import HasWordVocabInfo, VocabInfo

__all__ = ["JoinedReader"]


@registries.models.register("joined_reader")
class JoinedReader(Reader):
    """Finds answers by one encoder over the question and, behind it, the context.

    A word's vector is the sum of its own, of one that says which text it is in, and of one of how
    far it is a word of the question's. Each encoded word of the context has two scores; that there
    is no answer is scored by the mean of both texts.

    Source: Devlin et al. 2019, "BERT", section 4.2, without pretraining: that is another recipe's,
    whose ``embedding`` and ``encoder`` ``trainer.initialize`` takes.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=10, pad_idx=0, unk_idx=1))
        >>> model = JoinedReader.Config(no_answer=True).build(tokenizer=tokenizer)
        >>> context, lengths = torch.tensor([[5, 6, 7], [8, 0, 0]]), torch.tensor([3, 1])
        >>> model(context[:, :1], lengths.clamp(max=1), context, lengths, context * 0).start.shape
        torch.Size([2, 3])
    """

    class Config(Reader.Config):
        """Settings of the reader."""

        encoder: SequenceEncoder.Config = SelfAttentionEncoder.Config()
        """What makes each word of both texts know the others; its longest text must hold a
        question and a window of a context."""

    config: Config

    def __init__(
        self, config: Config, *, tokenizer: HasWordVocabInfo, characters: VocabInfo | None = None
    ) -> None:
        super().__init__(config, tokenizer=tokenizer, characters=characters)
        self.texts = nn.Parameter(torch.randn(2, self.dim) * self.dim**-0.5)
        if config.matches:
            self.matches = nn.Linear(LEVELS - 1, self.dim, bias=False)
        self.encoder: SequenceEncoder = config.encoder.build(dim=self.dim)
        self.scores = nn.Linear(self.encoder.out_dim, 2)
        self.pooling: MeanPooling = MeanPooling.Config().build(dim=self.encoder.out_dim)
        if config.no_answer:
            self.none = nn.Linear(self.encoder.out_dim, 1)

    @override
    def check_lengths(self, question: int, context: int) -> None:
        refuse_longer(
            question + context,
            self.encoder.max_length,
            what="A question with a window of its context",
            instead="task.max_length or task.max_question_length",
            where="model.encoder",
        )

    @override
    def read(self, question: Texts, context: Texts, matches: Tensor | None) -> SpanScores:
        x = context.vectors if matches is None else context.vectors + self.matches(matches)
        joined = torch.cat([question.vectors + self.texts[0], x + self.texts[1]], dim=1)
        lengths = question.lengths + context.lengths
        place = torch.arange(int(lengths.max()), device=joined.device)
        # Real words only, the context's behind the question's: padding is at the end alone.
        behind = (place - question.lengths[:, None]).clamp(min=0, max=x.shape[1] - 1)
        asked = place < question.lengths[:, None]
        at = torch.where(asked, place, question.vectors.shape[1] + behind)
        states = self.encoder(_taken(joined, at), lengths)

        place = torch.arange(x.shape[1], device=joined.device)
        at = (question.lengths[:, None] + place).clamp(max=states.shape[1] - 1)
        start, end = self.scores(self.dropout(_taken(states, at))).unbind(-1)
        if not self.no_answer:
            return SpanScores(start, end, None)
        pooled = self.pooling(states, real_tokens(states, lengths))
        return SpanScores(start, end, self.none(self.dropout(pooled))[:, 0])


def _taken(x: Tensor, at: Tensor) -> Tensor:
    """Vectors at places. *Shape:* :math:`(B,T,D)` at :math:`(B,S)` to :math:`(B,S,D)`."""
    return x.gather(1, at[..., None].expand(-1, -1, x.shape[-1]))
