"""Which models the fast step knows whole: only what it knows can be laid out otherwise."""

from collections.abc import Sequence
from typing import Final
from weakref import WeakKeyDictionary

import torch
from torch import nn
from torch.nn.modules.module import _has_any_global_hook

from weft.models.decoders.transformer import TransformerDecoder, TransformerDecoderLayer
from weft.models.layers.attention import CrossAttention, SelfAttention
from weft.models.layers.heads import MultiHead
from weft.models.layers.layer import Residual
from weft.models.layers.linear import LinearLayer
from weft.models.transformer import Transformer

__all__ = ["is_supported"]

KNOWN: Final = (
    "weft.models.",
    "torch.nn.modules.linear",
    "torch.nn.modules.normalization",
    "torch.nn.modules.container",
)
"""Where the classes of the modules come from that the fast step knows."""

_METHODS: WeakKeyDictionary[type, frozenset[str]] = WeakKeyDictionary()


def is_supported(model: Transformer) -> bool:
    """Whether the model and all layers are of the kinds that the fast step knows, as they came.

    It is asked for each batch: 0.4 ms for 4 layers.
    """
    if torch.is_autocast_enabled("cpu") or _has_any_global_hook():
        return False
    # A subclass, or a method put on an instance, may decode in a way of its own.
    if not _are_of([(model, Transformer), (model.decoder, TransformerDecoder)]):
        return False
    if _has_methods_of_its_own(model) or not all(map(_as_it_came, model.decoder.modules())):
        return False
    if not all(map(_is_known, model.decoder.layers)):
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
            *((m, LinearLayer) for m in (itself.qkv, itself.out, to_memory.q, to_memory.out)),
            (layer.attention_residual, Residual),
            (layer.cross_attention_residual, Residual),
            (layer.feed_forward_residual, Residual),
        ]
    )
