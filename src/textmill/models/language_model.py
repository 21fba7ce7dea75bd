"""What a language model is, and the recurrent one: a long short-term memory."""

from abc import abstractmethod
from typing import ClassVar

from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory
from textmill.models.encoders.lstm import lstm_layers, run_layers
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.linear import LinearLayer, TokenScores
from textmill.models.layers.word_embeddings import token_table
from textmill.models.vocabulary import HasVocabInfo


class LanguageModel(TokenScores):
    """Base of models that score the next token of a text from those before it.

    It is a :class:`~textmill.models.decoding.search_state.Generator`: a search goes on with a text
    that is read token by token, and there is nothing to encode.
    """

    carries_state: ClassVar[bool]
    """Whether what was read in one block is known in the next."""
    rows_apart: bool = False
    """Whether a block's tokens know of nothing before their own row."""

    @property
    @abstractmethod
    def max_length(self) -> int:
        """Most tokens of a block, and of a text that is gone on with."""

    @abstractmethod
    def hidden(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor | None]:
        """The states that the next tokens are scored from, :math:`(B,T,D)`, and what is carried on.

        ``state`` was carried on from the tokens before, None: there are none; the state after the
        last token is None where the model carries none. *Shape* of ids: :math:`(B,T)`.
        """

    @abstractmethod
    def start(self, memory: DecoderMemory) -> object:
        """The state of a search in which nothing was read, for each row of ``memory``."""

    @abstractmethod
    def step(self, tokens: Tensor, state: object) -> Tensor:
        """Reads a token of each row. *Shape:* :math:`(B)` to logits :math:`(B,V)`."""

    @override
    def forward(self, ids: Tensor) -> Tensor:
        """Scores the next token everywhere. *Shape:* :math:`(B,T)` to :math:`(B,T,V)`."""
        return self.project(self.hidden(ids)[0])

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        """Nothing: a source only says how many rows there are."""
        del source_lengths
        return DecoderMemory(self.output_weight.new_zeros(source.shape[0], 0, 1), None)


class LstmState:
    """What an LSTM carries, for a search. *Shape:* :math:`(2,L,B,H)`."""

    def __init__(self, carried: Tensor) -> None:
        self.carried = carried

    def repeat(self, times: int) -> None:
        self.carried = self.carried.repeat_interleave(times, dim=2)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        del groups  # nothing is shared in a group
        self.carried = self.carried.index_select(2, indices)


@registries.models.register("lstm_language_model")
class LstmLanguageModel(LanguageModel):
    """A long short-term memory over tokens; its state is carried from block to block.

    Source: Mikolov et al. 2010, Zaremba et al. 2014 (dropout), Press and Wolf 2017 (``tie``).
    """

    carries_state = True

    class Config(BaseConfig):
        dim: int = 200
        """Features of a token's vector."""
        hidden_dim: int | None = None
        """Features of each layer; null is ``dim``."""
        num_layers: int = 2
        """Layers, one over the other."""
        dropout: float = 0.2
        """Probability of dropping a feature of the vectors, between layers and after the last, in
        training."""
        tie: bool = True
        """Whether a token is scored by its own vector; where ``hidden_dim`` is not ``dim``, states
        are projected to ``dim`` first."""

        def __post_init__(self) -> None:
            require(self, "model", sizes=["dim", "hidden_dim", "num_layers"], shares=["dropout"])

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.config = config
        vocab = tokenizer.vocab_info
        size = self.size = config.dim if config.hidden_dim is None else config.hidden_dim
        self.tokens = token_table(vocab.size, config.dim, pad_idx=vocab.pad_idx)
        self.layers = lstm_layers(config.dim, size, config.num_layers)
        self.dropout = Dropout(config.dropout)
        projects = config.tie and size != config.dim
        self.projection = LinearLayer(size, config.dim) if projects else nn.Identity()
        self.make_output(self.tokens, size, tie=config.tie, bias=True)

    @property
    @override
    def max_length(self) -> int:
        return 1_000_000  # it has no positions

    @override
    def hidden(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, Tensor]:
        x, carried = run_layers(self.layers, self.dropout(self.tokens(ids)), state, self.dropout)
        return self.projection(x), carried

    @override
    def start(self, memory: DecoderMemory) -> LstmState:
        sizes = (2, len(self.layers), len(memory.states), self.size)
        return LstmState(memory.states.new_zeros(sizes))

    @override
    def step(self, tokens: Tensor, state: object) -> Tensor:
        assert isinstance(state, LstmState)
        hidden, state.carried = self.hidden(tokens[:, None], state.carried)
        return self.project(hidden[:, 0])
