"""Attention: what its heads do, and the projections around them.

The base of all kinds of heads, the usual one and talking heads; then attention of a sequence to
itself, and to a memory, which are the same for every kind. Projections that read the same input are
one matrix: one large product is faster than three small ones.
"""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models import fast, registries
from textmill.models.layers.dropout import Dropout, dropout, has_cheap_masks
from textmill.models.layers.linear import LinearLayer, init_xavier, is_in_bf16
from textmill.models.layers.positions import RotaryPositions


class Attention(Component, nn.Module):
    """Base of the kinds of attention.

    A kind of your own is a subclass with :meth:`forward`, registered in
    ``textmill.models.registries.attentions``; it is built with ``num_heads`` and ``dropout``, the
    probability of dropping an attention weight in training.
    """

    class Config(BaseConfig):
        """Settings of an attention."""

    num_kv_heads: int
    """Heads of the keys and values; a divisor of the heads of the queries."""

    def __init__(self, config: Config, *, num_heads: int, dropout: float) -> None:
        del config
        nn.Module.__init__(self)
        self.num_heads = self.num_kv_heads = num_heads
        self.dropout = dropout

    @override
    @abstractmethod
    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        """What each query gathers, :math:`(B,H,T,K)`.

        *Shape:* queries :math:`(B,H,T,K)`, keys and values :math:`(B,G,S,K)`, :math:`G` being
        ``num_kv_heads``. The mask, broadcast to :math:`(B,H,T,S)`, is True where a key may be
        attended to; None: everywhere. The result of a query that may attend nowhere is finite and
        means nothing. With ``is_causal``, not together with a mask, query :math:`t` sees keys up
        to :math:`t` only.
        """


@registries.attentions.register("multi_head")
class MultiHead(Attention):
    r"""Scaled dot-product attention of heads (Vaswani et al. 2017, section 3.2), also grouped.

    :math:`\mathrm{softmax}(q k^\top / \sqrt{K})\, v`, by torch's fused kernel. With fewer
    ``num_kv_heads`` a group of heads shares keys and values (Ainslie et al. 2023), and the cache of
    decoding is smaller by as much: one is multi-query attention (Shazeer 2019).
    """

    class Config(Attention.Config):
        num_kv_heads: int | None = None
        """Heads of keys and values, a divisor of ``num_heads``; null: as many as heads."""

        def __post_init__(self) -> None:
            require(self, sizes=["num_kv_heads"])

    def __init__(self, config: Config, *, num_heads: int, dropout: float) -> None:
        super().__init__(config, num_heads=num_heads, dropout=dropout)
        self.num_kv_heads = config.num_kv_heads or num_heads

    @override
    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        grouped = self.num_kv_heads != self.num_heads
        dropped = self.dropout if self.training else 0.0
        # On a CPU torch's fused kernel has no dropout: it computes as much, with a dear mask. In an
        # exported graph it is three times as many nodes: 8 % of the time of one short text.
        cheap = torch.compiler.is_exporting() or (dropped and has_cheap_masks(q, dropped))
        if cheap and not grouped:
            scores = (q * q.shape[-1] ** -0.5) @ k.transpose(-1, -2)
            weights = dropout(_weights(scores, mask, is_causal=is_causal), dropped)
            return weights.to(v.dtype) @ v
        # Grouped: 0.66 instead of 0.94 ms of copied keys and values, for 32 rows of 32 positions.
        return fused_attention(
            q, k, v, mask, dropout_p=dropped, is_causal=is_causal, enable_gqa=grouped
        )


def fused_attention(
    q: Tensor, k: Tensor, v: Tensor, mask: Tensor | None = None, **settings: Any
) -> Tensor:
    """What torch's ``scaled_dot_product_attention`` gives, of the same arguments.

    In a step of bf16 it is computed in float32 where that is faster, see
    :class:`textmill.models.fast.Fast`.
    """
    plain = torch.compiler.is_compiling() or not is_in_bf16(q)
    if plain or fast.attention_type() == "bf16":
        return F.scaled_dot_product_attention(q, k, v, mask, **settings)
    with torch.autocast("cpu", enabled=False):
        return F.scaled_dot_product_attention(q.float(), k.float(), v.float(), mask, **settings)


@registries.attentions.register("talking_heads")
class TalkingHeads(Attention):
    r"""Attention whose heads mix their scores and their weights (Shazeer et al. 2020).

    :math:`P_w\, \mathrm{softmax}(P_l\, (q k^\top / \sqrt{K}))\, v`, where :math:`P_l` and
    :math:`P_w` mix the :math:`H` heads at each pair of positions. Both start as the identity: a new
    model is one of multi-head attention. No fused kernel does this; it takes the memory of all
    :math:`H T S` weights.
    """

    def __init__(self, config: Attention.Config, *, num_heads: int, dropout: float) -> None:
        super().__init__(config, num_heads=num_heads, dropout=dropout)
        self.scores_mix = nn.Parameter(torch.eye(num_heads))
        self.weights_mix = nn.Parameter(torch.eye(num_heads))
        self.drop = Dropout(dropout)

    @override
    def forward(
        self,
        q: Tensor,
        k: Tensor,
        v: Tensor,
        mask: Tensor | None = None,
        *,
        is_causal: bool = False,
    ) -> Tensor:
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        scores = (self.scores_mix @ scores.flatten(2)).view(scores.shape)
        weights = _weights(scores, mask, is_causal=is_causal)
        weights = self.drop((self.weights_mix @ weights.flatten(2)).view(weights.shape))
        out: Tensor = (weights @ v).to(q.dtype)
        return out


def _weights(scores: Tensor, mask: Tensor | None, *, is_causal: bool) -> Tensor:
    """How much of each key a query takes. *Shape:* :math:`(B,H,T,S)`, ``mask`` as in Attention."""
    if is_causal:
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        # Half the least number instead of minus infinity, which would be NaN where nothing is seen.
        # It is added, for that costs nothing on the way back.
        least = torch.finfo(scores.dtype).min / 2
        scores = scores + torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, least)
    return scores.softmax(-1)


def _fused_projection(dim: int, sizes: Sequence[int]) -> LinearLayer:
    linear = LinearLayer(dim, sum(sizes))
    for block in linear.weight.split(list(sizes)):
        # Gain 1/sqrt(2) is fairseq's for fused query, key and value: the scale of one Xavier (3D,
        # D) matrix.
        nn.init.xavier_uniform_(block, gain=2**-0.5)
    nn.init.zeros_(linear.bias)
    return linear


class _Heads(nn.Module):
    """What both directions of attention have: the sizes of heads, and shapes by them."""

    out: LinearLayer

    def __init__(self, heads: Attention, *, dim: int) -> None:
        super().__init__()
        self.dim, self.heads = dim, heads
        self.num_heads, self.num_kv_heads = heads.num_heads, heads.num_kv_heads
        if dim % self.num_heads:
            raise UserError(
                "dim must be divisible by num_heads, "
                f"but dim is {dim} and num_heads {self.num_heads}."
            )
        self.head_dim = dim // self.num_heads
        self.kv_dim = self.num_kv_heads * self.head_dim

    def split(self, x: Tensor) -> Tensor:
        """One head a row. *Shape:* :math:`(B,T,HK)` to :math:`(B,H,T,K)`."""
        return x.view(*x.shape[:2], -1, self.head_dim).transpose(1, 2)

    def join(self, y: Tensor) -> Tensor:
        """What heads gathered, through :attr:`out`. *Shape:* :math:`(B,H,T,K)` to (B,T,D)."""
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out


class SelfAttention(_Heads):
    r"""Every position attends to its own sequence (Vaswani et al. 2017, section 3.2).

    ``dim`` features go in and out, :math:`D`, a multiple of the number of heads :math:`H`;
    ``positions`` turn queries and keys by theirs.
    """

    def __init__(
        self, heads: Attention, *, dim: int, positions: RotaryPositions | None = None
    ) -> None:
        super().__init__(heads, dim=dim)
        self.positions = positions
        self._sizes = [dim, self.kv_dim, self.kv_dim]  # features of queries, keys and values
        self.qkv = _fused_projection(dim, self._sizes)
        self.out = LinearLayer(dim, dim)
        init_xavier(self.out)

    def _project(self, x: Tensor, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys, values. *Shape:* each :math:`(B,H,T,D/H)`."""
        q, k, v = (self.split(part) for part in self.qkv(x).split(self._sizes, dim=-1))
        if self.positions is not None:
            q, k = self.positions.turned(q, start), self.positions.turned(k, start)
        return q, k, v

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Attends over whole sequences, :math:`(B,T,D)` to the same.

        ``mask`` and ``is_causal`` are as in :meth:`Attention.forward`.
        """
        return self.join(self.heads(*self._project(x), mask, is_causal=is_causal))

    def step(self, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """Attends from one new position to all before it and itself; for inference.

        The cache has the keys and values; its row ``position``, from 0, is written. *Shape:*
        :math:`(B,1,D)` with :math:`(2,B,G,T,D/H)` to :math:`(B,1,D)`, :math:`G` =
        ``num_kv_heads``.
        """
        q, k, v = self._project(x, position)
        cache[0, :, :, position : position + 1] = k
        cache[1, :, :, position : position + 1] = v
        keys, values = cache[:, :, :, : position + 1].unbind(0)
        return self.join(self.heads(q, keys, values))


class CrossAttention(_Heads):
    """Every position of one sequence attends to a memory (the encoder's output)."""

    def __init__(self, heads: Attention, *, dim: int) -> None:
        super().__init__(heads, dim=dim)
        self.q = _fused_projection(dim, [dim])
        self.kv = _fused_projection(dim, [self.kv_dim, self.kv_dim])
        self.out = LinearLayer(dim, dim)
        init_xavier(self.out)

    def project_memory(self, memory: Tensor) -> Tensor:
        """Keys and values of a memory. *Shape:* :math:`(B,S,D)` to :math:`(2,B,G,S,D/H)`."""
        keys_values: Tensor = self.kv(memory).unflatten(-1, (2, self.num_kv_heads, self.head_dim))
        return keys_values.permute(2, 0, 3, 1, 4)

    @override
    def forward(self, x: Tensor, keys_values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attends to what :meth:`project_memory` gave, from :math:`(B,T,D)` to the same.

        ``mask`` is as in :meth:`Attention.forward`.
        """
        return self.join(self.heads(self.split(self.q(x)), *keys_values.unbind(0), mask))
