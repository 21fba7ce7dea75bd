"""A Transformer with a fast step."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast, final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor

from weft.models.decoder_state import DecoderMemory
from weft.models.decoding.fast.affine import Affine
from weft.models.decoding.fast.layer import FastLayer, norm_of
from weft.models.decoding.fast.slot_cache import SlotCache
from weft.models.decoding.fast.supported import is_supported
from weft.models.decoding.hypothesis import Generator
from weft.models.transformer import Transformer

__all__ = ["FastDecoder", "fastest"]

LEAST_ROWS: Final = 8
"""Weights are copied for so many rows: their copies take 5 ms and save 0.5 ms a step of 32 rows."""
MOST_WEIGHTS: Final = 100_000_000
"""No weights are copied for larger decoders: the time is that of reading them, in any layout."""

MOST_KEPT: Final = 20_000_000
"""Layouts of so many weights (twice 80 MB) are kept with their model for the next batch."""

_KEPT: WeakKeyDictionary[Transformer, tuple[list[int], list[Tensor], "_Laid"]] = WeakKeyDictionary()


def fastest(model: Generator, *, rows: int) -> Generator:
    """The fastest way to decode with a model while its weights stay as they are.

    Args:
        model: Any model.
        rows: Rows that are decoded together, beams counted in.

    Returns:
        A :class:`FastDecoder` of a Transformer on a CPU; else the model itself.
    """
    if not isinstance(model, Transformer) or not is_supported(model):
        return model
    parameters = _parameters(model)
    weights = sum(p.numel() for p in parameters)
    if rows < LEAST_ROWS or weights > MOST_WEIGHTS:
        return FastDecoder(model)
    places = [p.data_ptr() for p in parameters]
    matrices = [p for p in parameters if p.ndim == 2]
    kept = _KEPT.get(model)
    # No counter tells of every change (``parameter.data`` has its own), and a stale copy would make
    # a resumed run differ from the undisturbed one: all are compared, in 0.6 ms; copies take 2.
    if kept is not None and kept[0] == places and all(map(_equal, kept[1], matrices)):
        return FastDecoder(model, laid=kept[2])
    laid = _Laid.of(model, copy=True)
    if weights <= MOST_KEPT:
        _KEPT[model] = places, [m.detach().clone() for m in matrices], laid
    return FastDecoder(model, laid=laid)


def _parameters(model: Transformer) -> list[Tensor]:
    """All that a step of decoding reads: matrices are copied, vectors read where they are."""
    parameters = [*model.decoder.parameters(), model.output_weight]
    if model.output_bias is not None:
        parameters.append(cast("Tensor", model.output_bias))
    return parameters


def _equal(one: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same bits: 1.7 million numbers take 0.6 ms, with torch 1.6."""
    one, other = one.detach(), other.detach()
    plain = one.dtype == torch.float32 and one.is_contiguous() and other.is_contiguous()
    if not plain or one.shape != other.shape or one.numel() % 2:
        return torch.equal(one, other)
    bits, wanted = (x.view(-1).numpy().view(np.int64) for x in (one, other))
    return bool(np.array_equal(bits, wanted))


@final
@dataclass(frozen=True)
class _Laid:
    """A decoder laid out; it must not hold the model, with which it goes."""

    layers: list[FastLayer]
    norm: Callable[[Tensor], Tensor]
    output: Affine

    @classmethod
    def of(cls, model: Transformer, *, copy: bool) -> "_Laid":
        bias = cast("Tensor | None", model.output_bias)
        return cls(
            [
                FastLayer(x, number, copy=copy)
                for number, x in enumerate(model.decoder.each_layer())
            ],
            norm_of(model.decoder.norm),
            Affine.of(model.output_weight, bias, copy=copy),
        )


@final
class FastDecoder:
    """A Transformer in evaluation whose steps are fast: same scores but for rounding.

    Its weights are those of when they were laid out, or views of the model's.

    Args:
        model: The model; its layers are those of the library.
        laid: Its weights, laid out; None: views.
    """

    training = False

    def __init__(self, model: Transformer, *, laid: "_Laid | None" = None) -> None:
        self.model = model
        self.laid = laid if laid is not None else _Laid.of(model, copy=False)

    def train(self, mode: bool = True) -> "FastDecoder":
        """Nothing: it is for evaluation only."""
        return self

    @property
    def max_length(self) -> int:
        """Longest target it has positions for, in tokens."""
        return self.model.max_length

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        """Runs the encoder."""
        return self.model.encode(source, source_lengths)

    def start(self, memory: DecoderMemory) -> SlotCache:
        """A state in which nothing was read."""
        projected = [
            layer.cross_attention.project_memory(memory.states) for layer in self.laid.layers
        ]
        attention = self.laid.layers[0].attention
        return SlotCache(
            projected, memory.mask, heads=attention.num_kv_heads, features=attention.head_dim
        )

    def step(self, tokens: Tensor, state: SlotCache) -> Tensor:
        """Reads a token of each row. *Shape:* :math:`(N)` to logits :math:`(N,V)`."""
        # Layers change their input, which a hook may have kept: a copy of 3 us.
        x = self.model.target(tokens[:, None], state.position)[:, 0].clone()
        mask = state.open_slots()
        for layer in self.laid.layers:
            x = layer(x, state, mask)
        state.close_slots()
        return self.laid.output(self.laid.norm(x))
