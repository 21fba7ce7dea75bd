"""A decoder of long short-term memory with attention to a memory (Luong et al. 2015)."""

from typing import Literal, final

import torch
from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from weft.models.layers.dropout import Dropout
from weft.models.layers.linear import LinearLayer
from weft.models.layers.lstm import lstm_layers, run_layers

__all__ = ["AttentionKind", "LstmDecoder", "LstmDecoderState"]

AttentionKind = Literal["dot", "general"]


@final
class LstmDecoderState:
    """What the decoder keeps of the tokens it read, and the memory it attends to.

    Args:
        memory: The encoder's states. *Shape:* :math:`(B,S,H)`.
        mask: True at real ones; None if all are. *Shape:* :math:`(B,1,1,S)`.
        carried: The layers' states. *Shape:* :math:`(2,L,B,H)`.
        fed: What was last attended; zeros at the start. *Shape:* :math:`(B,1,D)`.
    """

    def __init__(
        self, memory: Tensor, mask: Tensor | None, *, carried: Tensor, fed: Tensor
    ) -> None:
        self.memory, self.mask = memory, mask
        self.carried, self.fed = carried, fed

    def __len__(self) -> int:
        """Number of rows."""
        return len(self.fed)

    def repeat(self, times: int) -> None:
        """Makes each row a group of ``times`` equal rows; the rows of a group share its memory."""
        self.carried = self.carried.repeat_interleave(times, dim=2)
        self.fed = self.fed.repeat_interleave(times, dim=0)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        """Keeps the rows of these indices, as ``DecoderState.select`` does."""
        if groups is None and len(self) == len(self.memory):
            groups = indices
        self.carried = self.carried.index_select(2, indices)
        self.fed = self.fed.index_select(0, indices)
        if groups is not None:
            self.memory = self.memory.index_select(0, groups)
            if self.mask is not None:
                self.mask = self.mask.index_select(0, groups)


@final
class LstmDecoder(nn.Module):
    r"""Layers over the target; the last one's states attend to a memory.

    With :math:`h_t` the state and :math:`m_s` the memory, the kinds of attention score
    :math:`h_t \cdot m_s` (``dot``) or :math:`h_t \cdot W_a m_s` (``general``). Their softmax weighs
    the memory's mean :math:`c_t`, and a token is scored from

    .. math::
        \tilde h_t = \tanh(W_c [h_t; c_t] + b_c)

    Args:
        dim: Features of a token's vector, and of :math:`\tilde h`.
        hidden_dim: Features of the layers and of the memory.
        num_layers: Layers.
        attention: The kind of scores.
        input_feeding: Whether a token is read together with the :math:`\tilde h` before it. Then
            tokens are read one by one, in training too.
        dropout: Probability of dropping a feature of a layer and of :math:`\tilde h` in training.
    """

    def __init__(
        self,
        *,
        dim: int,
        hidden_dim: int,
        num_layers: int,
        attention: AttentionKind,
        input_feeding: bool,
        dropout: float,
    ) -> None:
        super().__init__()
        self.dim, self.input_feeding = dim, input_feeding
        self.layers = lstm_layers(2 * dim if input_feeding else dim, hidden_dim, num_layers)
        self.dropout = Dropout(dropout)
        general = attention == "general"
        self.query = LinearLayer(hidden_dim, hidden_dim, bias=False) if general else nn.Identity()
        self.combine = LinearLayer(2 * hidden_dim, dim)

    def start(self, memory: Tensor, mask: Tensor | None, carried: Tensor) -> LstmDecoderState:
        """A state in which nothing was read; shapes as in :class:`LstmDecoderState`."""
        fed = memory.new_zeros(len(memory), 1, self.dim)
        return LstmDecoderState(memory, mask, carried=carried, fed=fed)

    @override
    def forward(self, x: Tensor, state: LstmDecoderState) -> Tensor:
        r"""Reads tokens; the state moves on. *Shape:* :math:`(B,T,D)` to :math:`(B,T,D)`."""
        if not self.input_feeding:
            return self._read(x, state)
        attended = []
        for token in x.split(1, dim=1):
            state.fed = self._read(torch.cat([token, state.fed], dim=-1), state)
            attended.append(state.fed)
        return torch.cat(attended, dim=1)

    def _read(self, x: Tensor, state: LstmDecoderState) -> Tensor:
        """The layers, then attention. *Shape:* :math:`(B,T,*)` to :math:`(B,T,D)`."""
        hidden, state.carried = run_layers(self.layers, x, state.carried, self.dropout)
        # Rows that share a memory (the beams of a source) are queries of one attention over it.
        queries = self.query(hidden).view(len(state.memory), 1, -1, hidden.shape[-1])
        memory = state.memory[:, None]
        context = F.scaled_dot_product_attention(queries, memory, memory, state.mask, scale=1.0)
        both = torch.cat([hidden, context.view_as(hidden)], dim=-1)
        out: Tensor = self.dropout(self.combine(both).tanh())
        return out
