"""A Transformer that scores the next token of a text: GPT, small."""

from collections.abc import Mapping
from typing import Any

from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import setting
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory, DecoderState
from textmill.models.language_model import LanguageModel
from textmill.models.layers.layer import Activation, CausalDecoder, LayerConfig
from textmill.models.layers.positions import PositionName
from textmill.models.layers.word_embeddings import Embedding, token_table
from textmill.models.pretrained import CheckpointConfig
from textmill.models.vocabulary import HasVocabInfo


@registries.models.register("transformer_language_model")
class CausalTransformer(LanguageModel):
    """A decoder-only Transformer; each block of a text stands alone.

    Source: Radford et al. 2018 and 2019 (GPT), with rotary positions (Su et al. 2021).
    """

    carries_state = False
    pretrained: CheckpointConfig | None = None
    """Whose weights a fresh run begins with."""

    class Config(LayerConfig):
        vocabulary_size: int | None = None
        """Number of tokens that are read and scored; null is the tokenizer's. Fewer where its last
        ids are marks that no text has (GPT-2's padding), more where rows of a checkpoint are
        spare."""
        dim: int = 128
        """Features of a token's representation."""
        num_layers: int = 4
        """Layers."""
        activation: Activation = "gelu"
        """Activation inside a feed-forward block."""
        positions: PositionName = "rotary"
        """Position encodings: a trained table, a turn of queries and keys, or sines and cosines."""
        max_length: int = 512
        """Most tokens of a block, and of a text that is gone on with."""
        tie: bool = True
        """Whether a token is scored by its own vector (Press and Wolf 2017)."""
        plain_embedding: bool = False
        """Whether token vectors are taken as they are (GPT-2); else they are multiplied by
        ``dim ** 0.5``."""
        rows_apart: bool = False
        """Whether a token attends to its own row alone, back to the end of the one before; else to
        all of its block, as lines of one text may. For rows that are documents."""
        architecture: Mapping[str, Any] | None = setting(None, in_key=False)
        """What config.json says of the published model whose weights the layers began with, with
        which ``textmill export --format huggingface`` writes them. ``pretrained_transformer`` sets
        it; null: there is no such model."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "model", sizes=["vocabulary_size", "dim", "num_layers"])

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        vocab, dim = tokenizer.vocab_info, config.dim
        self.config = config
        size = config.vocabulary_size or vocab.size
        tokens = token_table(size, dim, pad_idx=vocab.pad_idx if vocab.pad_idx < size else None)
        positions = config.make_positions(dim)
        scale = 1.0 if config.plain_embedding else dim**0.5
        self.text = Embedding(tokens, positions, scale=scale, dropout=config.dropout)
        self.decoder = CausalDecoder(config, dim, num_layers=config.num_layers, positions=positions)
        self.rows_apart = config.rows_apart
        self._row_end = vocab.eos_idx if config.rows_apart else -1
        self.make_output(tokens, dim, tie=config.tie, bias=False)

    @property
    @override
    def max_length(self) -> int:
        return self.config.max_length

    @override
    def hidden(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, None]:
        if state is not None:
            raise UserError("A CausalTransformer carries no state from block to block.")
        return self.decoder(self.text(ids), self._own_row(ids)), None

    def _own_row(self, ids: Tensor) -> Tensor | None:
        """What each token may attend to, :math:`(B,1,T,T)`: a row begins with the end before it."""
        if not self.rows_apart:
            return None
        row = (ids == self._row_end).cumsum(1)
        return (row[:, :, None] == row[:, None]).tril()[:, None]

    @override
    def start(self, memory: DecoderMemory) -> DecoderState:
        return self.decoder.start(memory.states)

    @override
    def step(self, tokens: Tensor, state: object) -> Tensor:
        assert isinstance(state, DecoderState)
        x = self.text(tokens[:, None], state.position)
        return self.project(self.decoder.step(x, state)[:, 0])
