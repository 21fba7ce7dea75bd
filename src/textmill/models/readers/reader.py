"""Models that read a context for the answer to a question: their base, and the two kinds."""

from abc import abstractmethod
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import SequenceEncoder, real_tokens
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.word_embeddings import WordReader
from textmill.models.poolings import AttentionPooling, MeanPooling
from textmill.models.readers.answer_spans import SpanScores
from textmill.models.vocabulary import HasVocabInfo, IdTable

LEVELS = 4
"""How a word of the context can match one of the question, from not at all to letter by letter."""


class Texts(NamedTuple):
    """Padded texts of one place at least."""

    vectors: Tensor
    """Of their words. *Shape:* :math:`(B,T,D)`."""
    lengths: Tensor
    """Real words of each row; 1 of an empty text, a word that is padding. *Shape:* :math:`(B)`."""


class Reader(WordReader):
    """Base of readers: where in a context the answer to a question begins, and where it ends."""

    class Config(WordReader.Config):
        dropout: float = 0.4
        """Probability of dropping a feature of a word's vector, before and after the encoders, in
        training."""
        word_dropout: float = 0.0
        """Probability of taking a word for the unknown one in training: what is left of it are its
        characters, its neighbours, and whether the question has it."""
        matches: bool = True
        """Whether a word of the context has features that say how it matches words of the
        question."""
        no_answer: bool = False
        """Whether a question can have no answer in its context."""

        def __post_init__(self) -> None:
            require(self, "model", shares=["dropout", "word_dropout"])

    def __init__(
        self, config: Config, *, tokenizer: HasVocabInfo, characters: IdTable | None = None
    ) -> None:
        nn.Module.__init__(self)
        self.config = config
        self.no_answer = config.no_answer
        """Whether it also says how likely there is none."""
        self.dim = self.make_vectors(config, tokenizer.vocab_info, characters)
        self.dropout = Dropout(config.dropout)
        self._add_layers(config)

    @abstractmethod
    def _add_layers(self, config: Any) -> None:
        """Makes what reads vectors of ``dim`` features."""

    @abstractmethod
    def check_lengths(self, question: int, context: int) -> None:
        """Refuses a question, or a window of a context, that may be too long for the encoders."""

    def _refuse_longer(self, length: int, what: str, lower: str, *, of: str) -> None:
        most = getattr(self, of).max_length
        if most is not None and length > most:
            raise UserError(
                f"{what} may have {length} tokens, but the module's encoder takes at most {most}. "
                f"Lower {lower}, or raise model.{of}.max_length."
            )

    @abstractmethod
    def read(self, question: Texts, context: Texts, matches: Tensor | None) -> SpanScores:
        """Scores the words of contexts, whose features ``matches`` are, :math:`(B,T,3)`.

        They are None where ``model.matches`` is false.
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

        *Shape:* ids of questions :math:`(B,Q)` and contexts :math:`(B,T)`, the real words of each,
        0 or more, :math:`(B)`; ``matches``, how far each word of the context is one of the
        question's, as :class:`~textmill.text.processors.question_answering.MatchesColumn` has it,
        :math:`(B,T)`; ids of characters, where the model was made for them, :math:`(B,Q,C)` and
        :math:`(B,T,C)`.
        """
        asked = self._texts(question, question_lengths, question_characters)
        given = self._texts(context, context_lengths, context_characters)
        features = None
        if self.config.matches:
            levels = F.pad(matches, (0, given.vectors.shape[1] - matches.shape[1]))
            features = F.one_hot(levels, LEVELS)[..., 1:].to(given.vectors.dtype)
        return self.read(asked, given, features)

    def _texts(self, ids: Tensor, lengths: Tensor, characters: Tensor | None) -> Texts:
        x = torch.cat(self.vectors(ids, characters), dim=-1)
        return Texts(self.dropout(x), lengths.clamp(min=1))


@registries.models.register("joined_reader")
class JoinedReader(Reader):
    """Finds answers by one encoder over the question followed by the context.

    A word's vector is the sum of its own, of one that says which text it is in, and of one of how
    far it is a word of the question's. Each encoded word of the context has two scores; that there
    is no answer is scored by the mean of both texts.

    Source: Devlin et al. 2019, "BERT", section 4.2, without pretraining: that is another recipe's,
    whose ``embedding`` and ``encoder`` ``trainer.initialize`` takes.
    """

    class Config(Reader.Config):
        encoder: SequenceEncoder.Config = SelfAttentionEncoder.Config()
        """What makes each word of both texts know the others; its longest text must hold a
        question and a window of a context."""

    config: Config

    @override
    def _add_layers(self, config: Config) -> None:
        self.texts = nn.Parameter(torch.randn(2, self.dim) * self.dim**-0.5)
        if config.matches:
            self.matches = nn.Linear(LEVELS - 1, self.dim, bias=False)
        _refuse_ids(config.encoder)
        self.encoder: SequenceEncoder = config.encoder.build(dim=self.dim)
        self.scores = nn.Linear(self.encoder.out_dim, 2)
        self.pooling: MeanPooling = MeanPooling.Config().build(dim=self.encoder.out_dim)
        if config.no_answer:
            self.none = nn.Linear(self.encoder.out_dim, 1)

    @override
    def check_lengths(self, question: int, context: int) -> None:
        what = "A question with a window of its context"
        lower = "task.max_length or task.max_question_length"
        self._refuse_longer(question + context, what, lower, of="encoder")

    @override
    def read(self, question: Texts, context: Texts, matches: Tensor | None) -> SpanScores:
        x = context.vectors if matches is None else context.vectors + self.matches(matches)
        joined = torch.cat([question.vectors + self.texts[0], x + self.texts[1]], dim=1)
        lengths = question.lengths + context.lengths
        # A graph that is exported cannot ask data for a size, and a device would be waited for.
        asks = joined.device.type == "cpu" and not torch.compiler.is_exporting()
        most = int(lengths.max()) if asks else joined.shape[1]
        place = torch.arange(most, device=joined.device)
        # Real words only, the context's after the question's: padding is at the end alone.
        within = (place - question.lengths[:, None]).clamp(min=0, max=x.shape[1] - 1)
        asked = place < question.lengths[:, None]
        at = torch.where(asked, place, question.vectors.shape[1] + within)
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
    """

    class Config(Reader.Config):
        encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """What makes each word of the context know the others."""
        question_encoder: SequenceEncoder.Config = LstmEncoder.Config()
        """Likewise of the question."""

    config: Config

    @override
    def _add_layers(self, config: Config) -> None:
        self.align = nn.Linear(self.dim, self.dim)
        more = LEVELS - 1 if config.matches else 0
        _refuse_ids(config.encoder)
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
        lower = "task.max_question_length"
        self._refuse_longer(question, "A question", lower, of="question_encoder")
        self._refuse_longer(context, "A window of a context", "task.max_length", of="encoder")

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


def _refuse_ids(encoder: SequenceEncoder.Config) -> None:
    if encoder.reads_ids:
        raise UserError(
            "This reader gives its encoder vectors of tokens, but model.encoder reads ids. Start "
            "from question/pretrained (model.type=pretrained_reader)."
        )
