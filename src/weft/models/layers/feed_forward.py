"""The position-wise feed-forward block."""

from collections.abc import Callable
from typing import Final, Literal, final

from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

__all__ = ["ACTIVATIONS", "Activation", "FeedForward"]

Activation = Literal["relu", "gelu", "silu"]
ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "silu": F.silu,
}


@final
class FeedForward(nn.Module):
    r"""Two projections around an activation (Vaswani et al. 2017, section 3.3).

    :math:`W_2 f(W_1 x + b_1) + b_2`.

    Args:
        dim: Features in and out, :math:`D`.
        ffn_dim: Features between the projections.
        activation: ``relu``, ``gelu`` (exact, by erf) or ``silu``.

    Example:
        >>> import torch
        >>> FeedForward(dim=8, ffn_dim=32)(torch.zeros(2, 3, 8)).shape
        torch.Size([2, 3, 8])
    """

    def __init__(self, *, dim: int, ffn_dim: int, activation: Activation = "relu") -> None:
        super().__init__()
        self.dim = dim
        self.inner = nn.Linear(dim, ffn_dim)
        self.activation = ACTIVATIONS[activation]
        self.outer = nn.Linear(ffn_dim, dim)
        for linear in (self.inner, self.outer):
            nn.init.xavier_uniform_(linear.weight)
            nn.init.zeros_(linear.bias)

    @override
    def forward(self, x: Tensor) -> Tensor:
        """*Shape:* :math:`(*,D)` to :math:`(*,D)`."""
        out: Tensor = self.outer(self.activation(self.inner(x)))
        return out
