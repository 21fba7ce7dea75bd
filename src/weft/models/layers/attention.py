"""Attention of a sequence to itself, and to a memory, whatever the kind of attention.

The projections that read the same input are one matrix (queries, keys and values of self-attention;
keys and values of cross-attention): one large product is faster than three small ones. What the
heads do with them is an :class:`~weft.models.layers.heads.Attention`.
"""

from collections.abc import Sequence
from typing import final

from torch import Tensor, nn
from typing_extensions import override

from weft.errors import UserError
from weft.models.layers.heads import Attention
from weft.models.layers.linear import LinearLayer
from weft.models.layers.positions import RotaryPositions

__all__ = ["CrossAttention", "SelfAttention"]


def _fused_projection(dim: int, sizes: Sequence[int]) -> LinearLayer:
    """Projections of ``dim`` to each size as one matrix, each initialized as if alone."""
    linear = LinearLayer(dim, sum(sizes))
    for block in linear.weight.split(list(sizes)):
        # Gain 1/sqrt(2) is fairseq's for fused query, key and value: the scale of one Xavier (3D,
        # D) matrix.
        nn.init.xavier_uniform_(block, gain=2**-0.5)
    nn.init.zeros_(linear.bias)
    return linear


def _output_projection(dim: int) -> LinearLayer:
    linear = LinearLayer(dim, dim)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


class _Heads(nn.Module):
    """What both directions of attention have: the sizes of heads, and shapes by them.

    Args:
        heads: The kind of attention.
        dim: Features in and out, :math:`D`; divisible by the number of heads :math:`H`.
    """

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


@final
class SelfAttention(_Heads):
    r"""Every position attends to its own sequence (Vaswani et al. 2017, section 3.2).

    Args:
        heads: The kind of attention.
        dim: Features in and out, :math:`D`; divisible by the number of heads :math:`H`.
        positions: Turns queries and keys by their positions; None does not.

    Example:
        >>> import torch
        >>> from weft.models.layers.heads import MultiHead
        >>> attention = SelfAttention(MultiHead.Config(num_heads=2, dropout=0.0).build(), dim=8)
        >>> attention(torch.zeros(2, 3, 8), is_causal=True).shape
        torch.Size([2, 3, 8])
    """

    def __init__(
        self, heads: Attention, *, dim: int, positions: RotaryPositions | None = None
    ) -> None:
        super().__init__(heads, dim=dim)
        self.positions = positions
        self.qkv = _fused_projection(dim, self._sizes)
        self.out = _output_projection(dim)

    @property
    def _sizes(self) -> list[int]:
        """Features of queries, keys and values."""
        return [self.dim, self.kv_dim, self.kv_dim]

    def _project(self, x: Tensor, start: int = 0) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys, values. *Shape:* each :math:`(B,H,T,D/H)`."""
        q, k, v = (self.split(part) for part in self.qkv(x).split(self._sizes, dim=-1))
        if self.positions is not None:
            q, k = self.positions.turned(q, start), self.positions.turned(k, start)
        return q, k, v

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None, *, is_causal: bool = False) -> Tensor:
        """Attends over whole sequences.

        Args:
            x: *Shape:* :math:`(B,T,D)`.
            mask: True where a position may be attended to; None attends everywhere.
                *Shape:* broadcast to :math:`(B,H,T,T)`.
            is_causal: A position sees itself and those before it only; not together with ``mask``.

        Returns:
            *Shape:* :math:`(B,T,D)`.
        """
        y = self.heads(*self._project(x), mask, is_causal=is_causal)
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out

    def step(self, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """Attends from one new position to all before it and itself; for inference.

        Args:
            x: *Shape:* :math:`(B,1,D)`.
            cache: Keys and values; row ``position`` is written. *Shape:* :math:`(2,B,G,T,D/H)`,
                :math:`G` = ``num_kv_heads``.
            position: Position of ``x``, from 0.

        Returns:
            *Shape:* :math:`(B,1,D)`.
        """
        q, k, v = self._project(x, position)
        cache[0, :, :, position] = k[:, :, 0]
        cache[1, :, :, position] = v[:, :, 0]
        keys, values = cache[:, :, :, : position + 1].unbind(0)
        y = self.heads(q, keys, values)
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out


@final
class CrossAttention(_Heads):
    """Every position of one sequence attends to a memory (the encoder's output).

    Args:
        heads: The kind of attention.
        dim: Features in and out, :math:`D`; divisible by the number of heads :math:`H`.

    Example:
        >>> import torch
        >>> from weft.models.layers.heads import MultiHead
        >>> attention = CrossAttention(MultiHead.Config(num_heads=2, dropout=0.0).build(), dim=8)
        >>> attention(torch.zeros(2, 3, 8), attention.project_memory(torch.zeros(2, 5, 8))).shape
        torch.Size([2, 3, 8])
    """

    def __init__(self, heads: Attention, *, dim: int) -> None:
        super().__init__(heads, dim=dim)
        self.q = _fused_projection(dim, [dim])
        self.kv = _fused_projection(dim, [self.kv_dim, self.kv_dim])
        self.out = _output_projection(dim)

    def project_memory(self, memory: Tensor) -> Tensor:
        """Keys and values of a memory. *Shape:* :math:`(B,S,D)` to :math:`(2,B,G,S,D/H)`."""
        keys_values: Tensor = self.kv(memory).unflatten(-1, (2, self.num_kv_heads, self.head_dim))
        return keys_values.permute(2, 0, 3, 1, 4)

    @override
    def forward(self, x: Tensor, keys_values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attends to a projected memory.

        Args:
            x: *Shape:* :math:`(B,T,D)`.
            keys_values: What :meth:`project_memory` gave. *Shape:* :math:`(2,B,G,S,D/H)`.
            mask: True where a memory position may be attended to; None attends everywhere.
                *Shape:* broadcast to :math:`(B,H,T,S)`.

        Returns:
            *Shape:* :math:`(B,T,D)`.
        """
        y = self.heads(self.split(self.q(x)), *keys_values.unbind(0), mask)
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out
