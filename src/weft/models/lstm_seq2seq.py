"""The recurrent encoder-decoder: long short-term memory with attention."""

from dataclasses import dataclass
from typing import Literal, final

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.config.validators import require
from weft.errors import UserError
from weft.models import registries
from weft.models.decoder_state import DecoderMemory, length_mask
from weft.models.decoders.lstm import AttentionKind, LstmDecoder, LstmDecoderState
from weft.models.encoders.lstm import LstmEncoder
from weft.models.layers.dropout import Dropout
from weft.models.layers.embedding import token_table
from weft.models.layers.linear import linear
from weft.models.vocabulary import HasVocabInfo

__all__ = ["LstmMemory", "LstmSeq2Seq"]


@final
@dataclass(frozen=True)
class LstmMemory(DecoderMemory):
    """An encoder's output, and where it ended."""

    last: Tensor
    """The layers' states after the last token. *Shape:* :math:`(2,L,B,H)`."""


@registries.models.register("lstm_seq2seq")
@final
class LstmSeq2Seq(Component, nn.Module):
    """An LSTM that reads the source, and one that writes the target with attention to it.

    A layer of the decoder begins with the last state of the encoder's same layer. There is one
    vocabulary, and no position: a text may be of any length.

    Source: Sutskever et al. 2014, Luong et al. 2015 (attention, ``input_feeding``), Press and Wolf
    2017 (``tie``).

    Args:
        config: The settings.
        tokenizer: Its ``vocab_info`` is read, nothing else.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=100, pad_idx=0))
        >>> model = LstmSeq2Seq.Config(dim=8).build(tokenizer=tokenizer)
        >>> source, lengths = torch.tensor([[5, 6, 3], [7, 3, 0]]), torch.tensor([3, 2])
        >>> model(source, lengths, torch.tensor([[2, 8], [2, 9]])).shape
        torch.Size([2, 2, 100])
    """

    class Config(BaseConfig):
        """Settings of the model."""

        dim: int = 256
        """Features of a token's vector, and of what the next token is scored from."""
        hidden_dim: int | None = None
        """Features of the encoder's vectors and of the decoder's layers; null is ``dim``."""
        num_layers: int = 1
        """Layers of the encoder, and of the decoder."""
        bidirectional: bool = True
        """Whether half of the encoder's features read the source from its end."""
        attention: AttentionKind = "general"
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

        def __post_init__(self) -> None:
            """Refuses what is no size and no probability, and a half of an odd number."""
            require(self, "model", sizes=["dim", "hidden_dim", "num_layers"], shares=["dropout"])
            if self.bidirectional and self.size % 2:
                name = "dim" if self.hidden_dim is None else "hidden_dim"
                raise UserError(
                    f"model.{name} must be even, since each direction of the encoder has half of "
                    f"it, but is {self.size}. Change it, or set model.bidirectional=false."
                )

        @property
        def size(self) -> int:
            """Features of the layers."""
            return self.dim if self.hidden_dim is None else self.hidden_dim

    config: Config
    output_weight: Tensor
    output_bias: Tensor

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.config, vocab = config, tokenizer.vocab_info

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
        ).build(dim=config.dim)
        self.decoder = LstmDecoder(
            dim=config.dim,
            hidden_dim=config.size,
            num_layers=config.num_layers,
            attention=config.attention,
            input_feeding=config.input_feeding,
            dropout=config.dropout,
        )
        self.output_weight = (table() if config.tie == "none" else self.target).weight
        self.output_bias = nn.Parameter(torch.zeros(vocab.size))

    @property
    def max_length(self) -> int:
        """A million: it has no positions."""
        return 1_000_000

    @override
    def forward(self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor) -> Tensor:
        """Scores the next token at every target position.

        Args and shapes are those of :meth:`weft.models.transformer.Transformer.forward`.
        """
        return self.project(self.hidden(source, source_lengths, target_in))

    def hidden(self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor) -> Tensor:
        """What :meth:`project` scores from: shapes as in :meth:`forward`, to :math:`(B,T,D)`."""
        state = self.start(self.encode(source, source_lengths))
        return self._read(target_in, state)

    def project(self, hidden: Tensor) -> Tensor:
        """Logits. *Shape:* :math:`(*,D)` to :math:`(*,V)`."""
        return linear(hidden, self.output_weight, self.output_bias)

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> LstmMemory:
        """Runs the encoder; shapes as in :meth:`forward`."""
        mask = length_mask(source, source_lengths)
        if source_lengths is None:
            source_lengths = torch.full(source.shape[:1], source.shape[1])
        states, last = self.encoder.read(self.dropout(self.source(source)), source_lengths)
        return LstmMemory(states, mask, last)

    def start(self, memory: DecoderMemory) -> LstmDecoderState:
        """A state in which nothing of the target was read."""
        assert isinstance(memory, LstmMemory)
        return self.decoder.start(memory.states, memory.mask, memory.last)

    def step(self, tokens: Tensor, state: LstmDecoderState) -> Tensor:
        """Reads a token of each row. *Shape:* :math:`(B)` to logits :math:`(B,V)`."""
        return self.project(self._read(tokens[:, None], state)[:, 0])

    def _read(self, tokens: Tensor, state: LstmDecoderState) -> Tensor:
        out: Tensor = self.decoder(self.dropout(self.target(tokens)), state)
        return out
