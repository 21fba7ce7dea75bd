"""A masked language model: an encoder, and scores of the tokens that it does not see."""

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import SequenceEncoder
from textmill.models.layers.linear import LinearLayer, TokenScores
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.vocabulary import HasVocabInfo


@registries.models.register("masked_language_model")
class MaskedLanguageModel(TokenScores):
    r"""Scores the tokens of a text from those around them.

    With ``tie`` the scores of an encoder's states :math:`h` are those of the tokens' own vectors
    :math:`E`:

    .. math::
        s = E \, \mathrm{norm}(\mathrm{gelu}(W h + b)) + c

    Its ``embedding`` and ``encoder`` are those of classifiers, taggers and others, which begin with
    them by ``trainer.initialize``. The vector of the mask is none of the table's, so that a
    vocabulary is the same with it and without.

    With ``next_sentence`` it also scores whether a second segment follows the first, with
    ``generator`` which tokens are not those of the text.

    Source: Devlin et al. 2019, "BERT"; Press and Wolf 2017 (``tie``); Clark et al. 2020, "ELECTRA:
    Pre-training Text Encoders as Discriminators Rather Than Generators" (``generator``).
    """

    class Config(BaseConfig):
        embedding: WordEmbedding.Config = WordEmbedding.Config(dim=128)
        """The tokens' vectors."""
        encoder: SequenceEncoder.Config = SelfAttentionEncoder.Config()
        """What makes each token's vector know its text, after it as well as before."""
        tie: bool = True
        """Whether a token is scored by its own vector; else by another one."""
        rows_apart: bool = False
        """Whether the rows that training packs into a block know nothing of each other, as if each
        was read alone; else a token knows all of its block. For encoders of self-attention."""
        next_sentence: bool = False
        """Whether a block is two segments, in half of the blocks of two places of the text, and the
        model learns in which the second follows (Devlin et al. 2019, section 3.1)."""
        generator: SequenceEncoder.Config | None = None
        """A smaller encoder that finds masked tokens; ``encoder`` then learns which tokens of the
        text are not its own, but drawn by the generator (ELECTRA). null: ``encoder`` finds them."""

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.config, vocab, dim = config, tokenizer.vocab_info, config.embedding.dim
        self.embedding: WordEmbedding = config.embedding.build(
            vocabulary_size=vocab.size, pad_idx=vocab.pad_idx
        )
        self.encoder: SequenceEncoder = config.encoder.build(dim=dim)
        self.generator: SequenceEncoder | None = None
        if config.generator is not None:
            self.generator = config.generator.build(dim=dim)
        self.rows_apart = config.rows_apart
        for encoder in (self.encoder, self.generator) if self.rows_apart else ():
            if not isinstance(encoder, SelfAttentionEncoder | None):
                raise UserError(
                    "model.rows_apart keeps tokens from attending to other rows, but the encoder "
                    f"is a {type(encoder).__name__}. Set model.encoder.type=self_attention, or "
                    "leave model.rows_apart out."
                )
        if self.rows_apart and config.next_sentence:
            raise UserError(
                "model.next_sentence is of a block's two segments, but with model.rows_apart the "
                "rows of a block know nothing of each other. Leave one of them out."
            )
        self.mask = nn.Parameter(nn.init.normal_(torch.empty(dim), std=dim**-0.5))
        self.transform = LinearLayer(self.finder.out_dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.make_output(self.embedding.tokens, dim, tie=config.tie, bias=True)
        self.segment: nn.Parameter | None = None
        self.next_sentence = self.replaced = None
        states = self.encoder.out_dim
        if config.next_sentence:
            self.segment = nn.Parameter(nn.init.normal_(torch.empty(dim), std=dim**-0.5))
            self.next_sentence = LinearLayer(4 * states, 1)
        if self.generator is not None:
            layers = LinearLayer(states, states), nn.GELU(), LinearLayer(states, 1)
            self.replaced = nn.Sequential(*layers)

    @property
    def finder(self) -> SequenceEncoder:
        """The encoder that finds masked tokens."""
        return self.encoder if self.generator is None else self.generator

    @property
    def only_masks(self) -> bool:
        """Whether nothing is learnt but masks, of blocks that are one text."""
        return not self.rows_apart and self.segment is None and self.generator is None

    @property
    def max_length(self) -> int | None:
        """Most tokens of a block; None: any number."""
        found = (self.encoder.max_length, self.finder.max_length)
        return min((length for length in found if length is not None), default=None)

    def hidden(
        self, ids: Tensor, lengths: Tensor | None = None, parts: Tensor | None = None
    ) -> Tensor:
        """What tokens are scored from: states of the encoder that finds them, :math:`(B,T,H)`.

        *Shape:* ids, the mask's being one beyond the vocabulary, :math:`(B,T)`; real ones of each
        row, 1 or more, None: all, :math:`(B)`; ``parts``, the number of the text or segment that
        each token is of, where several stand in a row, :math:`(B,T)`.
        """
        return self.read(self.finder, ids, lengths, parts)

    def read(
        self, encoder: SequenceEncoder, ids: Tensor, lengths: Tensor | None, parts: Tensor | None
    ) -> Tensor:
        """States of one of the encoders; the rest as of :meth:`hidden`."""
        if lengths is None:
            lengths = torch.full(ids.shape[:1], ids.shape[1], device=ids.device)
        is_mask = ids == len(self.output_weight)
        vectors = self.embedding(ids.masked_fill(is_mask, 0))
        apart = (parts,) if parts is not None and self.rows_apart else ()
        vectors = torch.where(is_mask[..., None], self.mask, vectors)
        if self.segment is not None and parts is not None:
            vectors = vectors + parts[..., None] * self.segment
        states: Tensor = encoder(vectors, lengths, *apart)
        return states

    def drawn(self, states: Tensor, draws: Tensor) -> Tensor:
        """Tokens drawn by their probabilities, each by a number from 0 to 1; :math:`(N)`."""
        reached = self.project(states).float().softmax(-1).cumsum(-1)
        return torch.searchsorted(reached, draws[:, None], right=True)[:, 0].clamp(
            max=reached.shape[-1] - 1
        )

    def follows(self, states: Tensor, parts: Tensor) -> Tensor:
        """How surely second segments follow the first ones: logits, :math:`(B)`.

        The means of both, of states of ``encoder``, are compared as two texts of a pair are.
        """
        assert self.next_sentence is not None
        second = parts[..., None].to(states.dtype)
        a, b = ((states * part).sum(1) / part.sum(1) for part in (1 - second, second))
        out: Tensor = self.next_sentence(torch.cat([a, b, (a - b).abs(), a * b], dim=1))
        return out[:, 0]

    @override
    def head(self, states: Tensor) -> Tensor:
        out: Tensor = self.norm(F.gelu(self.transform(states)))
        return out

    @override
    def forward(
        self, ids: Tensor, lengths: Tensor | None = None, parts: Tensor | None = None
    ) -> Tensor:
        """Scores the tokens everywhere. *Shape:* :math:`(B,T)` to :math:`(B,T,V)`."""
        return self.project(self.hidden(ids, lengths, parts))
