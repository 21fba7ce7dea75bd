"""Transformers of published and of small sizes, by name.

A preset is a :class:`~weft.models.transformer.Transformer.Config`: change it with
``dataclasses.replace``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from weft.config.registry import UnknownNameError
from weft.models.transformer import Transformer

__all__ = ["PRESETS", "preset", "preset_names"]

Config = Transformer.Config


def _nllb(*, dim: int, layers: int, ffn_dim: int) -> Config:
    """NLLB-200 (NLLB Team 2022; sizes as in fairseq2's ``nllb`` and ``facebook/nllb-200-*``).

    Its padding is the tokenizer's: published checkpoints disagree (0 in fairseq2, 1 in
    transformers), and no result depends on it.
    """
    return Config(
        vocabulary_size=256_206,
        dim=dim,
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        num_heads=16,
        ffn_dim=ffn_dim,
        dropout=0.1,
        attention_dropout=0.1,
        positions="sinusoidal_tensor2tensor",
        position_offset=2,
        max_length=1024,
    )


PRESETS: Final[Mapping[str, Config]] = MappingProxyType(
    {
        # For tests: a step takes a millisecond.
        "tiny": Config(
            dim=16,
            num_encoder_layers=2,
            num_decoder_layers=2,
            num_heads=2,
            ffn_dim=32,
            max_length=64,
        ),
        # The defaults; 100,000 short sentence pairs in a quarter of an hour on two cores.
        "small": Config(),
        # Vaswani et al. 2017, table 3: "base" (65 M parameters with 37,000 tokens) and "big" (213
        # M).
        "base": Config(
            dim=512,
            num_encoder_layers=6,
            num_decoder_layers=6,
            num_heads=8,
            ffn_dim=2048,
            norm_order="post",
        ),
        "big": Config(
            dim=1024,
            num_encoder_layers=6,
            num_decoder_layers=6,
            num_heads=16,
            ffn_dim=4096,
            dropout=0.3,
            norm_order="post",
        ),
        # Tiedemann and Thottingal 2020 (OPUS-MT), trained by Marian; each pair has its vocabulary.
        "opus_mt": Config(
            dim=512,
            num_encoder_layers=6,
            num_decoder_layers=6,
            num_heads=8,
            ffn_dim=2048,
            activation="silu",
            norm_order="post",
            output_bias=True,
        ),
        "nllb/dense_600m": _nllb(dim=1024, layers=12, ffn_dim=4096),
        "nllb/dense_1.3b": _nllb(dim=1024, layers=24, ffn_dim=8192),
        "nllb/dense_3.3b": _nllb(dim=2048, layers=24, ffn_dim=8192),
    }
)


def preset(name: str) -> Config:
    """The settings of that name.

    Raises:
        UnknownNameError: If no preset has the name; it lists those there are.

    Example:
        >>> import dataclasses
        >>> dataclasses.replace(preset("base"), dropout=0.3).dim
        512
        >>> preset("huge")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        weft.config.registry.UnknownNameError: Unknown model preset 'huge'. Known: tiny, small, ...
    """
    if name not in PRESETS:
        raise UnknownNameError(
            f"Unknown model preset '{name}'. Known: {', '.join(preset_names())}."
        )
    return PRESETS[name]


def preset_names() -> list[str]:
    """All names, from small to large."""
    return list(PRESETS)
