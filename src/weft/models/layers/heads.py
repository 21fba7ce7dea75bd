"""How heads attend: from queries, keys and values to what each query gathers.

The base of all kinds, the usual one and talking heads. What stands around it, the projections and
the cache, is in :mod:`weft.models.layers.attention`, the same for every kind.
"""

from abc import abstractmethod
from typing import final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.validators import require
from weft.errors import UserError
from weft.models.layers.blocks import BlockConfig, needed
from weft.models.layers.dropout import Dropout

__all__ = ["Attention", "MultiHead", "TalkingHeads"]


class Attention(Component, nn.Module):
    """Base of the kinds of attention.

    A kind of your own is a subclass with :meth:`forward`, registered in
    ``weft.config.registries.attentions``.
    """

    class Config(BlockConfig):
        """Settings that every attention has."""

        num_heads: int | None = None
        """Heads, which must divide the features of a token; None takes ``model.num_heads``."""
        dropout: float | None = None
        """Probability of dropping an attention weight in training; None takes
        ``model.attention_dropout``."""

        inherits = {"num_heads": "num_heads", "dropout": "attention_dropout"}  # noqa: RUF012

        def __post_init__(self) -> None:
            """Refuses numbers with which no attention works."""
            require(self, sizes=["num_heads"], shares=["dropout"])

    num_heads: int
    num_kv_heads: int
    """Heads of the keys and values; a divisor of the heads of the queries."""

    def __init__(self, config: Config) -> None:
        nn.Module.__init__(self)
        self.num_heads = self.num_kv_heads = needed(config, "num_heads")
        self.dropout = needed(config, "dropout")

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
        """What each query gathers.

        Args:
            q: Queries. *Shape:* :math:`(B,H,T,K)`.
            k: Keys. *Shape:* :math:`(B,G,S,K)`, :math:`G` = ``num_kv_heads``.
            v: Values. *Shape:* :math:`(B,G,S,K)`.
            mask: True where a key may be attended to; None: everywhere. The result of a query that
                may attend nowhere is finite and means nothing. *Shape:* broadcast to
                :math:`(B,H,T,S)`.
            is_causal: Query :math:`t` sees keys up to :math:`t` only; not together with ``mask``.

        Returns:
            *Shape:* :math:`(B,H,T,K)`.
        """


@registries.attentions.register("multi_head")
@final
class MultiHead(Attention):
    r"""Scaled dot-product attention of heads (Vaswani et al. 2017, section 3.2), also grouped.

    :math:`\mathrm{softmax}(q k^\top / \sqrt{K})\, v`, by torch's fused kernel. With fewer
    ``num_kv_heads`` a group of heads shares keys and values (Ainslie et al. 2023), and the cache of
    decoding is smaller by as much: one is multi-query attention (Shazeer 2019).

    Example:
        >>> import torch
        >>> attention = MultiHead.Config(num_heads=4, num_kv_heads=2, dropout=0.0).build()
        >>> q, kv = torch.zeros(1, 4, 3, 8), torch.zeros(1, 2, 5, 8)
        >>> attention(q, kv, kv).shape
        torch.Size([1, 4, 3, 8])
    """

    class Config(Attention.Config):
        """Settings of multi-head attention."""

        num_kv_heads: int | None = None
        """Heads of keys and values, a divisor of ``num_heads``; None: as many as heads."""

        @override
        def __post_init__(self) -> None:
            """Refuses heads of keys that the heads cannot share evenly."""
            super().__post_init__()
            require(self, sizes=["num_kv_heads"])
            if self.num_heads and self.num_kv_heads and self.num_heads % self.num_kv_heads:
                raise UserError(
                    "num_heads must be divisible by num_kv_heads, "
                    f"but is {self.num_heads}, and num_kv_heads {self.num_kv_heads}."
                )

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.num_kv_heads = config.num_kv_heads or self.num_heads

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
        """As in :class:`Attention`."""
        return F.scaled_dot_product_attention(
            q,
            k,
            v,
            mask,
            # On a CPU dropout leaves the fused kernel, which is slower.
            dropout_p=self.dropout if self.training else 0.0,
            is_causal=is_causal,
            # 0.66 instead of 0.94 ms of copied keys and values, for 32 rows of 32 positions.
            enable_gqa=self.num_kv_heads != self.num_heads,
        )


@registries.attentions.register("talking_heads")
@final
class TalkingHeads(Attention):
    r"""Attention whose heads mix their scores and their weights (Shazeer et al. 2020).

    :math:`P_w\, \mathrm{softmax}(P_l\, (q k^\top / \sqrt{K}))\, v`, where :math:`P_l` and
    :math:`P_w` mix the :math:`H` heads at each pair of positions. Both start as the identity: a new
    model is one of multi-head attention. No fused kernel does this; it takes the memory of all
    :math:`H T S` weights.

    Example:
        >>> attention = TalkingHeads.Config(num_heads=2, dropout=0.0).build()
        >>> attention(*[torch.zeros(1, 2, 3, 8)] * 3).shape
        torch.Size([1, 2, 3, 8])
    """

    class Config(Attention.Config):
        """Settings of talking-heads attention."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.scores_mix = nn.Parameter(torch.eye(self.num_heads))
        self.weights_mix = nn.Parameter(torch.eye(self.num_heads))
        self.drop = Dropout(self.dropout)

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
        """As in :class:`Attention`."""
        scores = _mixed(q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5, self.scores_mix)
        if is_causal:
            mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=q.device).tril()
        if mask is not None:
            # The least number instead of minus infinity, which would be NaN where nothing is seen.
            scores = scores.masked_fill(~mask, torch.finfo(scores.dtype).min)
        weights = self.drop(_mixed(scores.softmax(-1), self.weights_mix))
        out: Tensor = (weights @ v).to(q.dtype)
        return out


def _mixed(x: Tensor, mix: Tensor) -> Tensor:
    """Each head as a sum of all. *Shape:* :math:`(B,H,T,S)`, ``mix`` :math:`(H',H)`."""
    return (mix @ x.flatten(2)).view(x.shape)
