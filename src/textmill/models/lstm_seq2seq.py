"""The recurrent encoder-decoder: long short-term memory with attention."""

from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory, length_mask
from textmill.models.encoders.lstm import LstmEncoder, lstm_layers, run_layers
from textmill.models.layers.attention import fused_attention
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.linear import LinearLayer, TokenScores
from textmill.models.layers.word_embeddings import DictionaryEmbedding, token_table
from textmill.models.vocabulary import HasSize, HasVocabInfo


class LstmDecoderState:
    """What the decoder keeps of the tokens it read, and the memory it attends to.

    *Shape:* the encoder's states :math:`(B,S,H)`; a mask, True at real ones, None if all are,
    :math:`(B,1,1,S)`; the layers' states, ``carried``, :math:`(2,L,B,H)`; and what was last
    attended, ``fed``, zeros at the start, :math:`(B,1,D)`.
    """

    def __init__(
        self, memory: Tensor, mask: Tensor | None, *, carried: Tensor, fed: Tensor
    ) -> None:
        self.memory, self.mask = memory, mask
        self.carried, self.fed = carried, fed

    def __len__(self) -> int:
        return len(self.fed)

    def repeat(self, times: int) -> None:
        """As ``DecoderState.repeat``: the rows of a group share its memory."""
        self.carried = self.carried.repeat_interleave(times, dim=2)
        self.fed = self.fed.repeat_interleave(times, dim=0)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        if groups is None and len(self) == len(self.memory):
            groups = indices
        self.carried = self.carried.index_select(2, indices)
        self.fed = self.fed.index_select(0, indices)
        if groups is not None:
            self.memory = self.memory.index_select(0, groups)
            if self.mask is not None:
                self.mask = self.mask.index_select(0, groups)


class LstmDecoder(nn.Module):
    r"""Layers over the target; the last one's states attend to a memory.

    With :math:`h_t` the state and :math:`m_s` the memory, the kinds of attention score
    :math:`h_t \cdot m_s` (``dot``) or :math:`h_t \cdot W_a m_s` (``general``). Their softmax weighs
    the memory's mean :math:`c_t`, and a token is scored from

    .. math::
        \tilde h_t = \tanh(W_c [h_t; c_t] + b_c)

    With ``input_feeding`` a token is read together with the :math:`\tilde h` before it, one by one,
    in training too.
    """

    def __init__(self, config: "LstmSeq2Seq.Config") -> None:
        super().__init__()
        dim, hidden_dim = config.dim, config.size
        self.dim, self.input_feeding = dim, config.input_feeding
        width = 2 * dim if config.input_feeding else dim
        self.layers = lstm_layers(width, hidden_dim, config.num_layers)
        self.dropout = Dropout(config.dropout)
        general = config.attention == "general"
        self.query = LinearLayer(hidden_dim, hidden_dim, bias=False) if general else nn.Identity()
        self.combine = LinearLayer(2 * hidden_dim, dim)

    def start(self, memory: Tensor, mask: Tensor | None, carried: Tensor) -> LstmDecoderState:
        """A state in which nothing was read; shapes as in :class:`LstmDecoderState`."""
        fed = memory.new_zeros(memory.shape[0], 1, self.dim)
        return LstmDecoderState(memory, mask, carried=carried, fed=fed)

    @override
    def forward(self, x: Tensor, state: LstmDecoderState) -> Tensor:
        r"""Reads tokens; the state moves on. *Shape:* :math:`(B,T,D)` to :math:`(B,T,D)`."""
        if not self.input_feeding:
            return self._read(x, state)
        attended = []
        for token in x.split(1, dim=1):
            state.fed = self._read(torch.cat([token, state.fed], dim=-1), state)
            attended.append(state.fed)
        return torch.cat(attended, dim=1)

    def _read(self, x: Tensor, state: LstmDecoderState) -> Tensor:
        """The layers, then attention. *Shape:* :math:`(B,T,*)` to :math:`(B,T,D)`."""
        hidden, state.carried = run_layers(self.layers, x, state.carried, self.dropout)
        # Rows that share a memory (the beams of a source) are queries of one attention over it.
        queries = self.query(hidden).view(state.memory.shape[0], 1, -1, hidden.shape[-1])
        memory = state.memory[:, None]
        context = fused_attention(queries, memory, memory, state.mask, scale=1.0)
        both = torch.cat([hidden, context.view_as(hidden)], dim=-1)
        out: Tensor = self.dropout(self.combine(both).tanh())
        return out


@dataclass(frozen=True)
class LstmMemory(DecoderMemory):
    """An encoder's output, and where it ended."""

    last: Tensor
    """The layers' states after the last token. *Shape:* :math:`(2,L,B,H)`."""


@registries.models.register("lstm_seq2seq")
class LstmSeq2Seq(TokenScores):
    """An LSTM that reads the source, and one that writes the target with attention to it.

    A layer of the decoder begins with the last state of the encoder's same layer. There is one
    vocabulary, and no position: a text may be of any length.

    Source: Sutskever et al. 2014, Luong et al. 2015 (attention, ``input_feeding``), Press and Wolf
    2017 (``tie``).
    """

    class Config(BaseConfig):
        dim: int = 256
        """Features of a token's vector, and of what the next token is scored from."""
        hidden_dim: int | None = None
        """Features of the encoder's vectors and of the decoder's layers; null is ``dim``."""
        num_layers: int = 1
        """Layers of the encoder, and of the decoder."""
        bidirectional: bool = True
        """Whether half of the encoder's features read the source from its end."""
        attention: Literal["dot", "general"] = "general"
        """How a decoder's state is compared with the encoder's: their product (``dot``), or one
        with a trained matrix between them (``general``)."""
        input_feeding: bool = False
        """Whether the decoder reads what it attended together with the next token: it knows what
        is done already, but training reads token by token, too."""
        dropout: float = 0.2
        """Probability of dropping a feature of token vectors, layers and what is scored from, in
        training."""
        tie: Literal["all", "decoder", "none"] = "all"
        """Which share one embedding matrix: source, target and output (``all``), target and output
        (``decoder``), or none."""
        dictionary_embedding: DictionaryEmbedding.Config = DictionaryEmbedding.Config()
        """The vectors of the source's words by their kinds, in a recipe that has an ingredient
        ``dictionary``."""

        def __post_init__(self) -> None:
            require(self, "model", sizes=["dim", "hidden_dim", "num_layers"], shares=["dropout"])
            if self.bidirectional and self.size % 2:
                name = "dim" if self.hidden_dim is None else "hidden_dim"
                raise UserError(
                    f"model.{name} must be even, since each direction of the encoder has half of "
                    f"it, but is {self.size}. Change it, or set model.bidirectional=false."
                )

        @property
        def size(self) -> int:
            return self.dim if self.hidden_dim is None else self.hidden_dim

    def __init__(
        self, config: Config, *, tokenizer: HasVocabInfo, dictionary: HasSize | None = None
    ) -> None:
        nn.Module.__init__(self)
        self.config, vocab = config, tokenizer.vocab_info
        self.dictionary: DictionaryEmbedding | None = None
        if dictionary is not None:
            self.dictionary = config.dictionary_embedding.build(size=dictionary.size)

        def table() -> nn.Embedding:
            return token_table(vocab.size, config.dim, pad_idx=vocab.pad_idx)

        self.source = table()
        self.target = self.source if config.tie == "all" else table()
        self.dropout = Dropout(config.dropout)
        self.encoder: LstmEncoder = LstmEncoder.Config(
            hidden_dim=config.size // 2 if config.bidirectional else config.size,
            num_layers=config.num_layers,
            bidirectional=config.bidirectional,
            dropout=config.dropout,
        ).build(dim=config.dim + (self.dictionary.out_dim if self.dictionary else 0))
        self.decoder = LstmDecoder(config)
        self.output_weight = (table() if config.tie == "none" else self.target).weight
        self.output_bias = nn.Parameter(torch.zeros(vocab.size))

    max_length = 1_000_000
    """There are no positions."""

    @override
    def forward(
        self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor, **beside: Tensor
    ) -> Tensor:
        """Scores the next token, as :meth:`textmill.models.transformer.Transformer.forward`.

        ``beside`` is what :meth:`encode` takes beside the source.
        """
        return self.project(self.hidden(source, source_lengths, target_in, **beside))

    def hidden(
        self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor, **beside: Tensor
    ) -> Tensor:
        state = self.start(self.encode(source, source_lengths, **beside))
        return self._read(target_in, state)

    def encode(
        self, source: Tensor, source_lengths: Tensor | None, dictionary: Tensor | None = None
    ) -> LstmMemory:
        """Reads sources, and what a ``dictionary`` knows of their words, :math:`(B,N,3)`."""
        mask = length_mask(source, source_lengths)
        if source_lengths is None:
            source_lengths = torch.full(source.shape[:1], source.shape[1])
        x = self.source(source)
        if self.dictionary is not None and dictionary is not None:
            x = torch.cat([x, self.dictionary(dictionary, source.shape[1])], dim=-1)
        states, last = self.encoder.read(self.dropout(x), source_lengths)
        return LstmMemory(states, mask, last)

    def start(self, memory: DecoderMemory) -> LstmDecoderState:
        assert isinstance(memory, LstmMemory)
        return self.decoder.start(memory.states, memory.mask, memory.last)

    def step(self, tokens: Tensor, state: LstmDecoderState) -> Tensor:
        """Reads a token of each row. *Shape:* :math:`(B)` to logits :math:`(B,V)`."""
        return self.project(self._read(tokens[:, None], state)[:, 0])

    def _read(self, tokens: Tensor, state: LstmDecoderState) -> Tensor:
        out: Tensor = self.decoder(self.dropout(self.target(tokens)), state)
        return out
