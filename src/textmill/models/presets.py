"""Published sizes of the Transformer, which scripts of fairseq2 begin from."""

from typing import Final

from textmill.models.transformer import Transformer

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
