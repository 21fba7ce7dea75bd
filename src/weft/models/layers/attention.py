"""Multi-head attention: over a sequence itself, and from a sequence to a memory.

The projections that read the same input are one matrix (queries, keys and values of self-attention;
keys and values of cross-attention): one large product is faster than three small ones. The product
of queries, keys and values is ``torch.nn.functional.scaled_dot_product_attention``.
"""

from typing import final

from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.errors import UserError

__all__ = ["CrossAttention", "SelfAttention"]


def _head_dim(dim: int, num_heads: int) -> int:
    if dim % num_heads:
        raise UserError(
            f"dim must be divisible by num_heads, but dim is {dim} and num_heads {num_heads}."
        )
    return dim // num_heads


def _fused_projection(dim: int, parts: int) -> nn.Linear:
    """``parts`` projections of ``dim`` to ``dim`` as one matrix, each initialized as if alone."""
    linear = nn.Linear(dim, parts * dim)
    for block in linear.weight.split(dim):
        # Gain 1/sqrt(2) is fairseq's for fused query, key and value: the scale of one Xavier (3D,
        # D) matrix.
        nn.init.xavier_uniform_(block, gain=2**-0.5)
    nn.init.zeros_(linear.bias)
    return linear


def _output_projection(dim: int) -> nn.Linear:
    linear = nn.Linear(dim, dim)
    nn.init.xavier_uniform_(linear.weight)
    nn.init.zeros_(linear.bias)
    return linear


@final
class SelfAttention(nn.Module):
    r"""Every position attends to its own sequence (Vaswani et al. 2017, section 3.2).

    Args:
        dim: Features in and out, :math:`D`.
        num_heads: Heads :math:`H`; ``dim`` must be divisible by it, a head has :math:`D/H`
            features.
        dropout: Probability of dropping an attention weight in training. On CPU a value over 0
            leaves the fused kernel, which is slower.

    Example:
        >>> import torch
        >>> attention = SelfAttention(dim=8, num_heads=2)
        >>> attention(torch.zeros(2, 3, 8), is_causal=True).shape
        torch.Size([2, 3, 8])
    """

    def __init__(self, *, dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dim, self.num_heads, self.dropout = dim, num_heads, dropout
        self.head_dim = _head_dim(dim, num_heads)
        self.qkv = _fused_projection(dim, 3)
        self.out = _output_projection(dim)

    def _project(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Queries, keys, values. *Shape:* each :math:`(B,H,T,D/H)`."""
        batch, length, _ = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.num_heads, self.head_dim).unbind(2)
        return q.transpose(1, 2), k.transpose(1, 2), v.transpose(1, 2)

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
        q, k, v = self._project(x)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, k, v, mask, dropout_p=dropout, is_causal=is_causal)
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out

    def step(self, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """Attends from one new position to all before it and itself; for inference.

        Args:
            x: *Shape:* :math:`(B,1,D)`.
            cache: Keys and values; row ``position`` is written. *Shape:* :math:`(2,B,H,T,D/H)`.
            position: Position of ``x``, from 0.

        Returns:
            *Shape:* :math:`(B,1,D)`.
        """
        q, k, v = self._project(x)
        cache[0, :, :, position] = k[:, :, 0]
        cache[1, :, :, position] = v[:, :, 0]
        keys, values = cache[:, :, :, : position + 1].unbind(0)
        y = F.scaled_dot_product_attention(q, keys, values)
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out


@final
class CrossAttention(nn.Module):
    """Every position of one sequence attends to a memory (the encoder's output).

    Args:
        dim: Features in and out, :math:`D`.
        num_heads: Heads :math:`H`; ``dim`` must be divisible by it.
        dropout: As in :class:`SelfAttention`.

    Example:
        >>> import torch
        >>> attention = CrossAttention(dim=8, num_heads=2)
        >>> attention(torch.zeros(2, 3, 8), attention.project_memory(torch.zeros(2, 5, 8))).shape
        torch.Size([2, 3, 8])
    """

    def __init__(self, *, dim: int, num_heads: int, dropout: float = 0.0) -> None:
        super().__init__()
        self.dim, self.num_heads, self.dropout = dim, num_heads, dropout
        self.head_dim = _head_dim(dim, num_heads)
        self.q = _fused_projection(dim, 1)
        self.kv = _fused_projection(dim, 2)
        self.out = _output_projection(dim)

    def project_memory(self, memory: Tensor) -> Tensor:
        """Keys and values of a memory. *Shape:* :math:`(B,S,D)` to :math:`(2,B,H,S,D/H)`."""
        batch, length, _ = memory.shape
        keys_values: Tensor = self.kv(memory).view(batch, length, 2, self.num_heads, self.head_dim)
        return keys_values.permute(2, 0, 3, 1, 4)

    @override
    def forward(self, x: Tensor, keys_values: Tensor, mask: Tensor | None = None) -> Tensor:
        """Attends to a projected memory.

        Args:
            x: *Shape:* :math:`(B,T,D)`.
            keys_values: What :meth:`project_memory` gave. *Shape:* :math:`(2,B,H,S,D/H)`.
            mask: True where a memory position may be attended to; None attends everywhere.
                *Shape:* broadcast to :math:`(B,H,T,S)`.

        Returns:
            *Shape:* :math:`(B,T,D)`.
        """
        batch, length, _ = x.shape
        q = self.q(x).view(batch, length, self.num_heads, self.head_dim).transpose(1, 2)
        keys, values = keys_values.unbind(0)
        dropout = self.dropout if self.training else 0.0
        y = F.scaled_dot_product_attention(q, keys, values, mask, dropout_p=dropout)
        out: Tensor = self.out(y.transpose(1, 2).flatten(2))
        return out
