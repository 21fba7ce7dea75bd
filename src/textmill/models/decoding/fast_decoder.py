"""A Transformer's decoder laid out for one position of few rows at a time, on a CPU."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.nn.modules.module import _has_any_global_hook

from textmill.models.decoder_state import DecoderMemory
from textmill.models.decoding.search_state import Generator
from textmill.models.decoding.slot_cache import SlotCache
from textmill.models.layers.attention import CrossAttention, MultiHead, SelfAttention
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.layer import (
    Gated,
    Mlp,
    Residual,
    TransformerDecoder,
    TransformerDecoderLayer,
)
from textmill.models.layers.linear import LinearLayer
from textmill.models.layers.positions import RotaryPositions
from textmill.models.transformer import Transformer


@dataclass(frozen=True)
class Affine:
    r"""A linear layer, its weight laid out for products of few rows.

    The products of one position of 32 rows, dimension 128, take 0.54 ms with these weights and 0.98
    with those of ``torch.nn.Linear`` (4 layers, one thread); oneDNN's own layout takes 1.05.
    """

    weight: Tensor
    """*Shape:* :math:`(I,O)`."""
    bias: Tensor | None
    """*Shape:* :math:`(O)`."""
    scale: float = 1.0
    """What the result is multiplied with, at no cost."""

    @classmethod
    def of(cls, weight: Tensor, bias: Tensor | None, *, copy: bool, scale: float = 1.0) -> "Affine":
        """The map of a linear layer; its weight, :math:`(O,I)`, is copied for speed, or a view."""
        weight = weight.detach().t()
        bias = None if bias is None else bias.detach()
        return cls(weight.contiguous() if copy else weight, bias, scale)

    def __call__(self, x: Tensor) -> Tensor:
        """*Shape:* :math:`(N,I)` to :math:`(N,O)`."""
        if self.bias is None:
            y = torch.mm(x, self.weight)
            return y if self.scale == 1 else y * self.scale
        return torch.addmm(self.bias, x, self.weight, beta=self.scale, alpha=self.scale)

    def add_to(self, x: Tensor, y: Tensor) -> Tensor:
        """Adds the map of ``y`` to ``x``, :math:`(N,O)`, in place: 4 us less than in two steps."""
        x.addmm_(y, self.weight, alpha=self.scale)
        return x if self.bias is None else x.add_(self.bias, alpha=self.scale)


class FastLayer:
    """What a :class:`TransformerDecoderLayer` of ``multi_head`` attention does in its ``step``.

    Its ``number`` is from 0; weights are views, or with ``copy`` copied for speed.
    """

    def __init__(self, layer: TransformerDecoderLayer, number: int, *, copy: bool) -> None:
        self.number = number
        self.attention, self.cross_attention = layer.attention, layer.cross_attention

        def affine(linear: nn.Linear) -> Affine:
            return Affine.of(linear.weight, linear.bias, copy=copy)

        itself, to_memory = layer.attention, layer.cross_attention
        weight, bias, dim = itself.qkv.weight, itself.qkv.bias, itself.dim
        scale = itself.head_dim**-0.5
        self.q = Affine.of(weight[:dim], bias[:dim], copy=copy, scale=scale)
        self.kv = Affine.of(weight[dim:], bias[dim:], copy=copy)
        weight, bias, scale = to_memory.q.weight, to_memory.q.bias, to_memory.head_dim**-0.5
        self.cross_q = Affine.of(weight, bias, copy=copy, scale=scale)
        self.feed_forward: Callable[[Tensor], Tensor] = layer.feed_forward
        outer = None
        if isinstance(block := layer.feed_forward, Mlp):
            inner, outer = affine(block.inner), affine(block.outer)
            activation = torch.relu_ if block.activation is F.relu else block.activation
            self.feed_forward = lambda x: activation(inner(x))
        self.residuals = [
            _residual(layer.attention_residual, affine(itself.out)),
            _residual(layer.cross_attention_residual, affine(to_memory.out)),
            _residual(layer.feed_forward_residual, outer),
        ]

    def __call__(self, x: Tensor, cache: SlotCache, mask: Tensor | None) -> Tensor:
        """Runs one position of each beam; ``x`` may be changed. *Shape:* :math:`(GK,D)`.

        The cache's slots are open, ``mask`` is what :meth:`SlotCache.open_slots` gave.
        """
        itself, to_memory, feed_forward = self.residuals
        x = itself(x, lambda h: self._attend_itself(h, cache, mask))
        x = to_memory(x, lambda h: self._attend_memory(h, cache))
        return feed_forward(x, self.feed_forward)

    def _attend_itself(self, x: Tensor, cache: SlotCache, mask: Tensor | None) -> Tensor:
        module, q, kv = self.attention, self.q(x), self.kv(x)
        if module.positions is not None:
            q, kv = _turned(module, q, kv, cache.position)
        keys, values = cache.write(self.number, kv)
        q = _queries(q, cache.groups, module.num_kv_heads, module.head_dim)
        scores = torch.bmm(q, keys)
        if mask is not None:
            shape = (cache.groups, module.num_kv_heads, -1, cache.beams, scores.shape[2])
            scores.view(shape).add_(mask[:, None, None])
        return _gathered(torch.bmm(scores.softmax(dim=2), values), cache.groups, cache.beams)

    def _attend_memory(self, x: Tensor, cache: SlotCache) -> Tensor:
        module, mask = self.cross_attention, cache.memory_mask
        keys, values = cache.memory[self.number]
        q = _queries(self.cross_q(x), cache.groups, module.num_kv_heads, module.head_dim)
        scores = torch.bmm(q, keys) if mask is None else torch.baddbmm(mask, q, keys)
        return _gathered(torch.bmm(scores.softmax(dim=2), values), cache.groups, cache.beams)


# Attention is two batched products: torch's fused kernel is for longer queries. Heads that share
# keys, and beams, are rows of one product.


def _queries(q: Tensor, groups: int, heads: int, features: int) -> Tensor:
    """One row of products for each head of the keys. *Shape:* :math:`(GK,D)` to (GH,RK,F)."""
    if len(q) == groups:
        return q.reshape(groups * heads, -1, features)
    q = q.view(groups, len(q) // groups, heads, -1, features)
    return q.permute(0, 2, 3, 1, 4).reshape(groups * heads, -1, features)


def _gathered(y: Tensor, groups: int, beams: int) -> Tensor:
    """What queries gathered by beam. *Shape:* :math:`(GH,RK,F)` to :math:`(GK,D)`."""
    if beams == 1:
        return y.view(groups, -1)
    y = y.view(groups, -1, beams, y.shape[2])
    return y.transpose(1, 2).reshape(groups * beams, -1)


def _turned(module: SelfAttention, q: Tensor, kv: Tensor, position: int) -> tuple[Tensor, Tensor]:
    assert module.positions is not None
    heads = torch.cat([q, kv[:, : module.kv_dim]], dim=1).unflatten(1, (-1, 1, module.head_dim))
    turned = module.positions.turned(heads, position).flatten(1)
    return turned[:, : module.dim], torch.cat([turned[:, module.dim :], kv[:, module.kv_dim :]], 1)


def _residual(
    residual: Residual, last: Affine | None
) -> Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]:
    norm, add = norm_of(residual.norm), torch.add if last is None else last.add_to
    if residual.order == "pre":
        return lambda x, block: add(x, block(norm(x)))
    return lambda x, block: norm(add(x, block(x)))


def norm_of(norm: nn.Module) -> Callable[[Tensor], Tensor]:
    """A normalization; the usual one without the way through its module (7 to 4 us)."""
    if type(norm) is not nn.LayerNorm:
        return norm
    shape, eps = list(norm.normalized_shape), norm.eps
    weight, bias = norm.weight.detach(), norm.bias.detach()
    return lambda x: torch.layer_norm(x, shape, weight, bias, eps)


LEAST_ROWS: Final = 8
"""Weights are copied for so many rows: their copies take 5 ms and save 0.5 ms a step of 32 rows."""
MOST_WEIGHTS: Final = 100_000_000
"""No weights are copied for larger decoders: the time is that of reading them, in any layout."""

MOST_KEPT: Final = 20_000_000
"""Layouts of so many weights (twice 80 MB) are kept with their model for the next batch."""

_KEPT: WeakKeyDictionary[Transformer, tuple[list[int], list[Tensor], "_Laid"]] = WeakKeyDictionary()

KNOWN: Final = {
    *(Transformer, TransformerDecoder, TransformerDecoderLayer, Residual, Mlp, Gated),
    *(SelfAttention, CrossAttention, MultiHead, RotaryPositions, LinearLayer, Dropout),
    *(nn.Identity, nn.LayerNorm, nn.ModuleList, nn.RMSNorm),
}
"""The modules that the fast step computes; a subclass may decode in a way of its own."""


def fastest(model: Generator, *, rows: int) -> Generator:
    """The fastest way to decode so many rows, beams counted in, while weights stay as they are.

    It is a :class:`FastDecoder` of a Transformer on a CPU; else the model itself.
    """
    if not isinstance(model, Transformer) or not _is_supported(model):
        return model
    # All that a step of decoding reads: matrices are copied, vectors read where they are.
    parameters = [*model.decoder.parameters(), model.output_weight]
    if model.output_bias is not None:
        parameters.append(model.output_bias)
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
    one, other = one.detach(), other.detach()
    plain = one.dtype == torch.float32 and one.is_contiguous() and other.is_contiguous()
    if not plain or one.shape != other.shape or one.numel() % 2:
        return torch.equal(one, other)
    bits, wanted = (x.view(-1).numpy().view(np.int64) for x in (one, other))
    return bool(np.array_equal(bits, wanted))


@dataclass(frozen=True)
class _Laid:
    """A decoder laid out; it must not hold the model, with which it goes."""

    layers: list[FastLayer]
    norm: Callable[[Tensor], Tensor]
    output: Affine

    @classmethod
    def of(cls, model: Transformer, *, copy: bool) -> "_Laid":
        each = enumerate(model.decoder.layers)
        layers = [FastLayer(layer, number, copy=copy) for number, layer in each]
        output = Affine.of(model.output_weight, model.output_bias, copy=copy)
        return cls(layers, norm_of(model.decoder.norm), output)


class FastDecoder:
    """A Transformer in evaluation whose steps are fast: same scores but for rounding.

    Its weights are those of when they were laid out; where they were not, views of the model's.
    Under autocast only the encoder computes in the narrow type: steps have too few rows to gain.
    """

    training = False

    def __init__(self, model: Transformer, *, laid: "_Laid | None" = None) -> None:
        self.model = model
        self.laid = laid if laid is not None else _Laid.of(model, copy=False)

    def train(self, mode: bool = True) -> "FastDecoder":
        """Does nothing: it is for evaluation only."""
        return self

    @property
    def max_length(self) -> int:
        return self.model.max_length

    def encode(self, source: Tensor, source_lengths: Tensor | None) -> DecoderMemory:
        return self.model.encode(source, source_lengths)

    def start(self, memory: DecoderMemory) -> SlotCache:
        layers, states = self.laid.layers, memory.states.to(self.laid.output.weight.dtype)
        with torch.autocast("cpu", enabled=False):
            projected = [layer.cross_attention.project_memory(states) for layer in layers]
        heads, features = layers[0].attention.num_kv_heads, layers[0].attention.head_dim
        return SlotCache(projected, memory.mask, heads=heads, features=features)

    def step(self, tokens: Tensor, state: SlotCache) -> Tensor:
        """Reads a token of each row. *Shape:* :math:`(N)` to logits :math:`(N,V)`."""
        with torch.autocast("cpu", enabled=False):
            # Layers change their input, which a hook may have kept: a copy of 3 us.
            x = self.model.target(tokens[:, None], state.position)[:, 0].clone()
            mask = state.open_slots()
            for layer in self.laid.layers:
                x = layer(x, state, mask)
            state.close_slots()
            return self.model.without_banned(self.laid.output(self.laid.norm(x)))


def _is_supported(model: Transformer) -> bool:
    """Whether the fast step computes the model: all modules are known, without hooks or patches."""
    if _has_any_global_hook():
        return False
    decoder = [*model.decoder.modules()]
    if any(type(part) not in KNOWN or _is_patched(part) for part in (model, *decoder)):
        return False
    if any(part._forward_hooks or part._forward_pre_hooks for part in decoder):
        return False
    weights = {(p.device.type, p.dtype) for p in model.decoder.parameters()}
    return weights == {("cpu", model.output_weight.dtype)}


def _is_patched(module: nn.Module) -> bool:
    """Whether a method of this one module was replaced, as accelerate does."""
    return any(callable(getattr(type(module), name, None)) for name in vars(module))
