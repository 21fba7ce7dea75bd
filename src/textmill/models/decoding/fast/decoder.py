"""A Transformer with a fast step, where it is one that the step knows whole."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, cast, final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.modules.module import _has_any_global_hook

from textmill.models.decoder_state import DecoderMemory
from textmill.models.decoding.fast.layer import Affine, FastLayer, norm_of
from textmill.models.decoding.fast.slot_cache import SlotCache
from textmill.models.decoding.search_state import Generator
from textmill.models.layers.attention import CrossAttention, MultiHead, SelfAttention
from textmill.models.layers.layer import Residual, TransformerDecoder, TransformerDecoderLayer
from textmill.models.layers.linear import LinearLayer
from textmill.models.transformer import Transformer

LEAST_ROWS: Final = 8
"""Weights are copied for so many rows: their copies take 5 ms and save 0.5 ms a step of 32 rows."""
MOST_WEIGHTS: Final = 100_000_000
"""No weights are copied for larger decoders: the time is that of reading them, in any layout."""

MOST_KEPT: Final = 20_000_000
"""Layouts of so many weights (twice 80 MB) are kept with their model for the next batch."""

_KEPT: WeakKeyDictionary[Transformer, tuple[list[int], list[Tensor], "_Laid"]] = WeakKeyDictionary()

KNOWN: Final = (
    "textmill.models.",
    "torch.nn.modules.linear",
    "torch.nn.modules.normalization",
    "torch.nn.modules.container",
)
"""Where the classes of the modules come from that the fast step knows."""

_METHODS: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def fastest(model: Generator, *, rows: int) -> Generator:
    """The fastest way to decode so many rows, beams counted in, while weights stay as they are.

    It is a :class:`FastDecoder` of a Transformer on a CPU; else the model itself.
    """
    if not isinstance(model, Transformer) or not _is_supported(model):
        return model
    # All that a step of decoding reads: matrices are copied, vectors read where they are.
    parameters = [*model.decoder.parameters(), model.output_weight]
    if model.output_bias is not None:
        parameters.append(cast("Tensor", model.output_bias))
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
        each = enumerate(model.decoder.each_layer())
        layers = [FastLayer(layer, number, copy=copy) for number, layer in each]
        output = Affine.of(model.output_weight, bias, copy=copy)
        return cls(layers, norm_of(model.decoder.norm), output)


@final
class FastDecoder:
    """A Transformer in evaluation whose steps are fast: same scores but for rounding.

    Its weights are those of when they were laid out; where they were not, views of the model's.
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
        layers = self.laid.layers
        projected = [layer.cross_attention.project_memory(memory.states) for layer in layers]
        heads, features = layers[0].attention.num_kv_heads, layers[0].attention.head_dim
        return SlotCache(projected, memory.mask, heads=heads, features=features)

    def step(self, tokens: Tensor, state: SlotCache) -> Tensor:
        """Reads a token of each row. *Shape:* :math:`(N)` to logits :math:`(N,V)`."""
        # Layers change their input, which a hook may have kept: a copy of 3 us.
        x = self.model.target(tokens[:, None], state.position)[:, 0].clone()
        mask = state.open_slots()
        for layer in self.laid.layers:
            x = layer(x, state, mask)
        state.close_slots()
        return self.model.without_banned(self.laid.output(self.laid.norm(x)))


def _is_supported(model: Transformer) -> bool:
    """Whether the model and all layers are of the kinds that the fast step knows, as they came.

    It is asked for each batch: 0.4 ms for 4 layers.
    """
    if torch.is_autocast_enabled("cpu") or _has_any_global_hook():
        return False
    # A subclass, or a method put on an instance, may decode in a way of its own.
    decoder = model.decoder
    whole: dict[type, object] = {Transformer: model, TransformerDecoder: decoder}
    if any(type(part) is not kind for kind, part in whole.items()):
        return False
    if _has_methods_of_its_own(model) or not all(map(_as_it_came, decoder.modules())):
        return False
    if not all(map(_is_known, decoder.layers)):
        return False
    weights = {(p.device.type, p.dtype) for p in model.decoder.parameters()}
    return weights == {("cpu", model.output_weight.dtype)}


def _as_it_came(module: nn.Module) -> bool:
    """Whether its class is one the fast step knows, and no hook or method was put on it."""
    # An adapter around a layer, say, has weights that are not all there is to it.
    known = type(module).__module__.startswith(KNOWN)
    hooks = module._forward_hooks or module._forward_pre_hooks
    return known and not hooks and not _has_methods_of_its_own(module)


def _has_methods_of_its_own(module: nn.Module) -> bool:
    """Whether a method was replaced on the instance: ``model.step = mine``."""
    kind = type(module)
    if (methods := _METHODS.get(kind)) is None:
        methods = frozenset(name for name in dir(kind) if callable(getattr(kind, name, None)))
        _METHODS[kind] = methods
    return not methods.isdisjoint(vars(module))


def _is_known(layer: nn.Module) -> bool:
    """Whether a layer and what it is made of are of the very classes that are laid out."""
    if type(layer) is not TransformerDecoderLayer:
        return False
    itself, to_memory = layer.attention, layer.cross_attention
    parts: dict[type, list[object]] = {
        SelfAttention: [itself],
        CrossAttention: [to_memory],
        MultiHead: [itself.heads, to_memory.heads],
        LinearLayer: [itself.qkv, itself.out, to_memory.q, to_memory.out],
        Residual: [
            layer.attention_residual,
            layer.cross_attention_residual,
            layer.feed_forward_residual,
        ],
    }
    return all(type(part) is kind for kind, found in parts.items() for part in found)
