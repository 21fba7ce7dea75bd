"""Models and what they are made of: layers, encoders, decoders, decoding, losses. Tensors only."""

from typing import TYPE_CHECKING

from textmill.config.public_names import on_first_use

if TYPE_CHECKING:
    from textmill.models.decoding import Decoding as Decoding
    from textmill.models.transformer import NLLB_600M as NLLB_600M
    from textmill.models.transformer import Transformer as Transformer

__getattr__, __dir__ = on_first_use(__name__)
