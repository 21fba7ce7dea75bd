"""The Transformer encoder-decoder (Vaswani et al. 2017), from small ones to Marian and NLLB."""

import dataclasses
from collections.abc import Mapping
from typing import Any, Final, Literal

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import setting
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory, DecoderState, length_mask
from textmill.models.layers.layer import LayerConfig, TransformerDecoder, TransformerEncoder
from textmill.models.layers.linear import TokenScores
from textmill.models.layers.word_embeddings import Embedding, token_table
from textmill.models.pretrained import CheckpointConfig
from textmill.models.vocabulary import HasVocabInfo, ModelVocabInfo


@registries.models.register("transformer")
class Transformer(TokenScores):
    """An encoder-decoder over one vocabulary.

    ``self.config`` holds the settings with the size and the padding of the tokenizer.
    """

    pretrained: CheckpointConfig | None = None
    """Whose weights a fresh run begins with."""

    class Config(LayerConfig):
        """Settings of the Transformer; the defaults suit 100,000 sentence pairs on a laptop."""

        vocabulary_size: int | None = None
        """Number of token ids; null: the tokenizer's. A larger number adds rows that no id uses, as
        published models have."""
        pad_idx: int | None = None
        """Id of the padding token; null: the tokenizer's."""
        dim: int = 128
        """Features of a token's representation."""
        num_encoder_layers: int = 4
        """Layers of the encoder."""
        num_decoder_layers: int = 4
        """Layers of the decoder."""
        tie: Literal["all", "decoder", "none"] = "all"
        """Which share one embedding matrix: source, target and output (``all``), target and output
        (``decoder``), or none (Press and Wolf 2017)."""
        scale_embedding: bool = True
        """Whether token vectors are multiplied by ``dim ** 0.5`` (Vaswani et al. 2017, 3.4)."""
        output_bias: bool = False
        """Whether each token's score has a bias (Marian)."""
        banned: tuple[int, ...] = ()
        """Token ids that are never answered (Marian's padding)."""
        architecture: Mapping[str, Any] | None = setting(None, in_key=False)
        """What config.json says of the published model whose weights the layers began with, with
        which ``textmill export --format huggingface`` writes them. ``pretrained_transformer`` sets
        it; null: there is no such model."""

        @override
        def __post_init__(self) -> None:
            super().__post_init__()
            require(self, "model", sizes=["dim", "num_encoder_layers", "num_decoder_layers"])

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        self.config = config = _filled(config, tokenizer.vocab_info)
        self.max_length = config.max_length
        """Longest source or target, in tokens."""
        tied = config.tie == "all"
        self.source = _embedding(config)
        self.target = _embedding(config, self.source.tokens if tied else None)
        self.encoder = TransformerEncoder(
            config,
            config.dim,
            num_layers=config.num_encoder_layers,
            positions=self.source.positions,
        )
        self.decoder = TransformerDecoder(
            config,
            config.dim,
            num_layers=config.num_decoder_layers,
            positions=self.target.positions,
        )
        tie, bias = config.tie != "none", config.output_bias
        self.make_output(self.target.tokens, config.dim, tie=tie, bias=bias)
        banned = torch.tensor(config.banned, dtype=torch.int64)
        self.register_buffer("banned", banned, persistent=False)

    banned: Tensor

    @override
    def forward(self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor) -> Tensor:
        """Scores the next token at every target position.

        ``target_in`` begins with the start mark and is without the last token; its padding is at
        the end and needs no lengths. *Shape:* ids of the source :math:`(B,S)`, its real tokens,
        None where all are, :math:`(B)`, ids of the target :math:`(B,T)`; to logits
        :math:`(B,T,V)`.
        """
        return self.project(self.hidden(source, source_lengths, target_in))

    def hidden(self, source: Tensor, source_lengths: Tensor | None, target_in: Tensor) -> Tensor:
        """The decoder's last states, :math:`(B,T,D)`; arguments and shapes as in :meth:`forward`.

        A loss projects its real positions only, which saves the logits of the padding.
        """
        memory = self.encode(source, source_lengths)
        out: Tensor = self.decoder(self.target(target_in), memory.states, memory.mask)
        return out

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        mask = length_mask(source, source_lengths)
        return DecoderMemory(self.encoder(self.source(source), mask), mask)

    def start(self, memory: DecoderMemory) -> DecoderState:
        """Starts decoding one token at a time: projects the memory for every layer, once."""
        layers = self.decoder.layers
        projected = [layer.cross_attention.project_memory(memory.states) for layer in layers]
        heads, head_dim = layers[0].attention.num_kv_heads, layers[0].attention.head_dim
        return DecoderState(projected, memory.mask, heads=heads, head_dim=head_dim)

    def step(self, tokens: Tensor, state: DecoderState) -> Tensor:
        """Reads one token of each row, :math:`(B)`, and scores the next, :math:`(B,V)`.

        The state, what was read before, moves on by one position.
        """
        x = self.target(tokens[:, None], state.position)
        for number, layer in enumerate(self.decoder.layers):
            x = layer.step(
                x,
                state.self_cache(number),
                state.position,
                keys_values=state.memory_keys_values[number],
                memory_mask=state.memory_mask,
            )
        state.position += 1
        return self.without_banned(self.project(self.decoder.norm(x)[:, 0]))

    def without_banned(self, logits: Tensor) -> Tensor:
        """Logits, :math:`(B,V)`, by which nothing banned is ever answered."""
        return logits.index_fill(1, self.banned, -torch.inf) if len(self.banned) else logits


def _filled(config: Transformer.Config, vocab: ModelVocabInfo) -> Transformer.Config:
    size = vocab.size if config.vocabulary_size is None else config.vocabulary_size
    wrong = {"vocabulary_size": (size, vocab.size)} if size < vocab.size else {}
    if config.pad_idx not in (None, vocab.pad_idx):
        wrong["pad_idx"] = config.pad_idx, vocab.pad_idx
    for name, (written, found) in wrong.items():
        raise UserError(
            f"model.{name} is {written}, but the tokenizer's is {found}. "
            f"Leave model.{name} out to take the tokenizer's, "
            "or use the tokenizer that the model was made for."
        )
    if wrong_ids := [i for i in config.banned if not 0 <= i < size]:
        raise UserError(f"model.banned has {wrong_ids[0]}, but ids are from 0 to {size - 1}.")
    return dataclasses.replace(config, vocabulary_size=size, pad_idx=vocab.pad_idx)


def _embedding(config: Transformer.Config, tokens: nn.Embedding | None = None) -> Embedding:
    assert config.vocabulary_size is not None
    assert config.pad_idx is not None
    if tokens is None:
        tokens = token_table(config.vocabulary_size, config.dim, pad_idx=config.pad_idx)
    scale = config.dim**0.5 if config.scale_embedding else 1.0
    positions = config.make_positions(config.dim)
    return Embedding(tokens, positions, scale=scale, dropout=config.dropout)


NLLB_600M: Final = Transformer.Config(
    dim=1024,
    num_encoder_layers=12,
    num_decoder_layers=12,
    num_heads=16,
    ffn_dim=4096,
    vocabulary_size=256_206,
    dropout=0.1,
    attention_dropout=0.1,
    positions="sinusoidal_tensor2tensor",
    position_offset=2,
    max_length=1024,
)
"""NLLB-200 with 615 million parameters (NLLB Team 2022); fairseq2 calls it ``dense_600m``.

The padding is the tokenizer's: published checkpoints disagree (0 in fairseq2, 1 in transformers),
and no result depends on it.
"""
