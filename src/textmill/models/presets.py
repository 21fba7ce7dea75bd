"""Transformers of published and of small sizes, by name.

A preset is a :class:`~textmill.models.transformer.Transformer.Config`: change it with
``dataclasses.replace``.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from textmill.config.registry import UnknownNameError
from textmill.models.transformer import Transformer

Config = Transformer.Config


def _sizes(dim: int, layers: int, heads: int, ffn_dim: int, **more: Any) -> Config:
    return Config(
        dim=dim,
        num_encoder_layers=layers,
        num_decoder_layers=layers,
        num_heads=heads,
        ffn_dim=ffn_dim,
        **more,
    )


# NLLB Team 2022; sizes as in fairseq2's "nllb" and "facebook/nllb-200-*". The padding is the
# tokenizer's: published checkpoints disagree (0 in fairseq2, 1 in transformers), and no result
# depends on it.
_NLLB: Final = {
    "vocabulary_size": 256_206,
    "dropout": 0.1,
    "attention_dropout": 0.1,
    "positions": "sinusoidal_tensor2tensor",
    "position_offset": 2,
    "max_length": 1024,
}

PRESETS: Final[Mapping[str, Config]] = MappingProxyType(
    {
        # For tests: a step takes a millisecond.
        "tiny": _sizes(16, 2, 2, 32, max_length=64),
        # The defaults; 100,000 short sentence pairs in a quarter of an hour on two cores.
        "small": Config(),
        # Vaswani et al. 2017, table 3: 65 M parameters with 37,000 tokens, and 213 M.
        "base": _sizes(512, 6, 8, 2048, norm_order="post"),
        "big": _sizes(1024, 6, 16, 4096, dropout=0.3, norm_order="post"),
        "nllb/dense_600m": _sizes(1024, 12, 16, 4096, **_NLLB),
        "nllb/dense_1.3b": _sizes(1024, 24, 16, 8192, **_NLLB),
        "nllb/dense_3.3b": _sizes(2048, 24, 16, 8192, **_NLLB),
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
        textmill.config.registry.UnknownNameError: Unknown model preset 'huge'. Known: ...
    """
    if name not in PRESETS:
        raise UnknownNameError(
            f"Unknown model preset '{name}'. Known: {', '.join(preset_names())}."
        )
    return PRESETS[name]


def preset_names() -> list[str]:
    """All names, from small to large."""
    return list(PRESETS)
