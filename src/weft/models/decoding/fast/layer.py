"""One layer of a decoder, for one position at a time."""

from collections.abc import Callable
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from weft.models.decoders.transformer import TransformerDecoderLayer
from weft.models.decoding.fast.affine import Affine
from weft.models.decoding.fast.slots import SlotCache
from weft.models.layers.attention import CrossAttention, SelfAttention
from weft.models.layers.feed_forward import Mlp
from weft.models.layers.residual import Residual

__all__ = ["FastLayer"]


@final
class FastLayer:
    """What a :class:`TransformerDecoderLayer` does in its ``step``.

    Args:
        layer: The layer, its attentions of the kind ``multi_head``.
        number: Its number, from 0.
        copy: Whether weights are copied, for speed, or views.
    """

    def __init__(self, layer: TransformerDecoderLayer, number: int, *, copy: bool) -> None:
        self.number = number
        self.attention, self.cross_attention = layer.attention, layer.cross_attention

        def affine(linear: nn.Linear) -> Affine:
            return Affine.of(linear.weight, linear.bias, copy=copy)

        self.qkv, self.out = affine(self.attention.qkv), affine(self.attention.out)
        self.cross_q = affine(self.cross_attention.q)
        self.cross_out = affine(self.cross_attention.out)
        self.feed_forward: Callable[[Tensor], Tensor] = layer.feed_forward
        if type(layer.feed_forward) is Mlp:
            inner, outer = affine(layer.feed_forward.inner), affine(layer.feed_forward.outer)
            activation = _in_place(layer.feed_forward.activation)
            self.feed_forward = lambda x: outer(activation(inner(x)))
        self.residuals = [
            _residual(layer.attention_residual),
            _residual(layer.cross_attention_residual),
            _residual(layer.feed_forward_residual),
        ]

    def __call__(self, x: Tensor, cache: SlotCache, mask: Tensor | None) -> Tensor:
        """Runs one position of each beam.

        Args:
            x: *Shape:* :math:`(GK,D)`.
            cache: Its slots are open.
            mask: What :meth:`SlotCache.open_slots` gave.

        Returns:
            *Shape:* :math:`(GK,D)`.
        """
        itself, to_memory, feed_forward = self.residuals
        mask = None if mask is None else mask[:, None, None]
        x = itself(x, lambda h: self.out(self._attend_itself(h, cache, mask)))
        x = to_memory(x, lambda h: self.cross_out(self._attend_memory(h, cache)))
        return feed_forward(x, self.feed_forward)

    def _attend_itself(self, x: Tensor, cache: SlotCache, mask: Tensor | None) -> Tensor:
        module, groups, beams = self.attention, cache.groups, cache.beams
        qkv = self.qkv(x)
        q, kv = qkv[:, : module.dim], qkv[:, module.dim :]
        if module.positions is not None:
            q, kv = _turned(module, q, kv, cache.position)
        heads, features = module.num_kv_heads, module.head_dim
        kv = kv.view(groups, beams, 2, heads, features).permute(2, 0, 3, 1, 4)
        return _attended(module, q, cache.write(self.number, kv), mask)

    def _attend_memory(self, x: Tensor, cache: SlotCache) -> Tensor:
        mask = None if cache.memory_mask is None else cache.memory_mask[:, None]
        return _attended(self.cross_attention, self.cross_q(x), cache.memory[self.number], mask)


def _attended(
    module: SelfAttention | CrossAttention, q: Tensor, keys_values: Tensor, mask: Tensor | None
) -> Tensor:
    """What queries gather, by two batched products: torch's fused kernel is for longer ones.

    Args:
        module: Says how many heads there are.
        q: *Shape:* :math:`(GK,D)`.
        keys_values: *Shape:* :math:`(2,G,H',T,F)`.
        mask: Added to scores. *Shape:* broadcast to :math:`(G,H',R,K,T)` with R heads for one of
            the keys.

    Returns:
        *Shape:* :math:`(GK,D)`.
    """
    _, groups, heads, slots, features = keys_values.shape
    beams, shared = len(q) // groups, module.num_heads // heads
    # Heads that share keys, and beams, are rows of one product.
    q = (q * features**-0.5).view(groups, beams, heads, shared, features).permute(0, 2, 3, 1, 4)
    q = q.reshape(groups * heads, shared * beams, features)
    keys, values = keys_values.flatten(1, 2).unbind(0)
    scores = torch.bmm(q, keys.transpose(1, 2))
    if mask is not None:
        scores.view(groups, heads, shared, beams, slots).add_(mask)
    y = torch.bmm(scores.softmax(dim=-1), values)
    y = y.view(groups, heads, shared, beams, features).permute(0, 3, 1, 2, 4)
    return y.reshape(groups * beams, heads * shared * features)


def _turned(module: SelfAttention, q: Tensor, kv: Tensor, position: int) -> tuple[Tensor, Tensor]:
    """Queries and keys turned by their position (rotary positions)."""
    assert module.positions is not None
    heads = torch.cat([q, kv[:, : module.kv_dim]], dim=1).unflatten(1, (-1, 1, module.head_dim))
    turned = module.positions.turned(heads, position).flatten(1)
    return turned[:, : module.dim], torch.cat([turned[:, module.dim :], kv[:, module.kv_dim :]], 1)


def _residual(residual: Residual) -> Callable[[Tensor, Callable[[Tensor], Tensor]], Tensor]:
    """The connection around a block, without dropout."""
    norm = residual.norm
    if residual.order == "pre":
        return lambda x, block: x + block(norm(x))
    return lambda x, block: norm(x + block(x))


def _in_place(activation: Callable[[Tensor], Tensor]) -> Callable[[Tensor], Tensor]:
    return torch.relu_ if activation is F.relu else activation
