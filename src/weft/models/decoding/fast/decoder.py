"""A Transformer with a fast step."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, cast, final
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from weft.models.decoders.transformer import TransformerDecoder, TransformerDecoderLayer
from weft.models.decoding.fast.affine import Affine
from weft.models.decoding.fast.layer import FastLayer, norm_of
from weft.models.decoding.fast.slots import SlotCache
from weft.models.decoding.hypothesis import Generator
from weft.models.layers.attention import CrossAttention, SelfAttention
from weft.models.layers.heads import MultiHead
from weft.models.layers.linear import Linear
from weft.models.layers.residual import Residual
from weft.models.memory import Memory
from weft.models.transformer import Transformer

__all__ = ["FastDecoder", "fastest"]

KNOWN: Final = (
    "weft.models.",
    "torch.nn.modules.linear",
    "torch.nn.modules.normalization",
    "torch.nn.modules.container",
)
"""Where the classes of the modules come from that the fast step knows."""
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
    if not isinstance(model, Transformer) or not _suits(model):
        return model
    weights = sum(p.numel() for p in (*model.decoder.parameters(), model.output_weight))
    if rows < LEAST_ROWS or weights > MOST_WEIGHTS:
        return FastDecoder(model)
    parameters = _parameters(model)
    places = [p.data_ptr() for p in parameters]
    matrices = [p for p in parameters if p.ndim == 2]
    kept = _KEPT.get(model)
    # No counter tells of every change (``parameter.data`` has its own), and a stale copy would make
    # a resumed run differ from the undisturbed one: all are compared, in 1 ms where copies take 5.
    if kept is not None and kept[0] == places and all(map(torch.equal, kept[1], matrices)):
        return FastDecoder(model, laid=kept[2])
    laid = _Laid.of(model, copy=True)
    if weights <= MOST_KEPT:
        _KEPT[model] = places, [m.clone() for m in matrices], laid
    return FastDecoder(model, laid=laid)


def _parameters(model: Transformer) -> list[Tensor]:
    """All that a step of decoding reads: matrices are copied, vectors read where they are."""
    parameters = [*model.decoder.parameters(), model.output_weight]
    if model.output_bias is not None:
        parameters.append(cast("Tensor", model.output_bias))
    return [p.detach() for p in parameters]


def _suits(model: Transformer) -> bool:
    """Whether the model and all layers are of the kinds that the fast step knows, as they came."""
    if torch.is_autocast_enabled("cpu") or _has_any_global_hook():
        return False
    # A subclass, or a method put on an instance, may decode in a way of its own.
    if not _are_of([(model, Transformer), (model.decoder, TransformerDecoder)]):
        return False
    modules = list(model.decoder.modules())
    if any(m._forward_hooks or m._forward_pre_hooks for m in modules):
        return False
    if any(map(_has_methods_of_its_own, [model, *modules])):
        return False
    if not all(type(m).__module__.startswith(KNOWN) for m in modules):
        return False  # an adapter around a layer, say: its weights are not all there is to it
    if not all(map(_is_known, model.decoder.layers)):
        return False
    weights = {(p.device.type, p.dtype) for p in model.decoder.parameters()}
    return weights == {("cpu", model.output_weight.dtype)}


def _has_methods_of_its_own(module: nn.Module) -> bool:
    """Whether a method was replaced on the instance: ``model.step = mine``."""
    return any(callable(getattr(type(module), name, None)) for name in vars(module))


def _are_of(things: Sequence[tuple[object, type]]) -> bool:
    """Whether each is of the very class beside it, not of a subclass."""
    return all(type(thing) is kind for thing, kind in things)


def _is_known(layer: nn.Module) -> bool:
    """Whether a layer and what it is made of are of the very classes that are laid out."""
    if type(layer) is not TransformerDecoderLayer:
        return False
    itself, to_memory = layer.attention, layer.cross_attention
    return _are_of(
        [
            (itself, SelfAttention),
            (to_memory, CrossAttention),
            *((attention.heads, MultiHead) for attention in (itself, to_memory)),
            *((m, Linear) for m in (itself.qkv, itself.out, to_memory.q, to_memory.out)),
            (layer.attention_residual, Residual),
            (layer.cross_attention_residual, Residual),
            (layer.feed_forward_residual, Residual),
        ]
    )


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

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> Memory:
        """Runs the encoder."""
        return self.model.encode(source, source_lengths)

    def start(self, memory: Memory) -> SlotCache:
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
