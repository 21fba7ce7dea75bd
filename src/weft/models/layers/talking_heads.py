"""Talking-heads attention (Shazeer et al. 2020)."""

from typing import final

import torch
from torch import Tensor, nn
from typing_extensions import override

from weft.config import registries
from weft.models.layers.dropout import Dropout
from weft.models.layers.heads import Attention

__all__ = ["TalkingHeads"]


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
