"""Position-wise feed-forward blocks: the usual one and the gated one."""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, final

from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.models.layers.linear import LinearLayer, init_xavier

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


@final
class Mlp(nn.Module):
    r"""Two projections around an activation (Vaswani et al. 2017, section 3.3).

    :math:`W_2 f(W_1 x + b_1) + b_2`.
    """

    def __init__(self, dim: int, ffn_dim: int, activation: Activation) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.inner = LinearLayer(dim, ffn_dim)
        self.outer = LinearLayer(ffn_dim, dim)
        init_xavier(self.inner, self.outer)

    @override
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.outer(self.activation(self.inner(x)))
        return out


@final
class Gated(nn.Module):
    r"""A projection gated by the activation of another one (Shazeer 2020).

    :math:`W_2 (f(W_g x + b_g) \odot (W_1 x + b_1)) + b_2`: SwiGLU with silu (Llama), GeGLU with
    gelu (T5 1.1), ReGLU with relu. It has three matrices where an :class:`Mlp` has two; two thirds
    of the features inside make them equally large.
    """

    def __init__(self, dim: int, ffn_dim: int, activation: Activation) -> None:
        super().__init__()
        self.activation = ACTIVATIONS[activation]
        self.gate = LinearLayer(dim, ffn_dim)
        self.inner = LinearLayer(dim, ffn_dim)
        self.outer = LinearLayer(ffn_dim, dim)
        init_xavier(self.gate, self.inner, self.outer)

    @override
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.outer(self.activation(self.gate(x)) * self.inner(x))
        return out
