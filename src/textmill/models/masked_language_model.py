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

    Source: Devlin et al. 2019, "BERT"; Press and Wolf 2017 (``tie``).
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

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.config, vocab, dim = config, tokenizer.vocab_info, config.embedding.dim
        self.embedding: WordEmbedding = config.embedding.build(
            vocabulary_size=vocab.size, pad_idx=vocab.pad_idx
        )
        self.encoder: SequenceEncoder = config.encoder.build(dim=dim)
        self.rows_apart = config.rows_apart
        if self.rows_apart and not isinstance(self.encoder, SelfAttentionEncoder):
            raise UserError(
                f"model.rows_apart keeps tokens from attending to other rows, but the encoder is a "
                f"{type(self.encoder).__name__}. Set model.encoder.type=self_attention, or leave "
                "model.rows_apart out."
            )
        self.mask = nn.Parameter(nn.init.normal_(torch.empty(dim), std=dim**-0.5))
        self.transform = LinearLayer(self.encoder.out_dim, dim)
        self.norm = nn.LayerNorm(dim)
        self.make_output(self.embedding.tokens, dim, tie=config.tie, bias=True)

    def hidden(
        self, ids: Tensor, lengths: Tensor | None = None, parts: Tensor | None = None
    ) -> Tensor:
        """What tokens are scored from: states of the encoder, :math:`(B,T,H)`.

        *Shape:* ids, the mask's being one beyond the vocabulary, :math:`(B,T)`; real ones of each
        row, 1 or more, None: all, :math:`(B)`; ``parts``, the number of the text that each token
        is of, where several stand in a row and are kept apart, :math:`(B,T)`.
        """
        if lengths is None:
            lengths = torch.full(ids.shape[:1], ids.shape[1], device=ids.device)
        is_mask = ids == len(self.output_weight)
        vectors = self.embedding(ids.masked_fill(is_mask, 0))
        apart = () if parts is None else (parts,)
        vectors = torch.where(is_mask[..., None], self.mask, vectors)
        states: Tensor = self.encoder(vectors, lengths, *apart)
        return states

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
