"""Position-wise feed-forward blocks: the base of all kinds, the usual one and the gated one."""

from collections.abc import Callable
from functools import partial
from typing import Final, Literal, final

from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.validators import require
from textmill.models import registries
from textmill.models.layers.blocks import BlockConfig, needed
from textmill.models.layers.linear import LinearLayer, init_xavier

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


class FeedForward(Component, nn.Module):
    """Base of the feed-forward blocks: modules from :math:`(*,D)` to the same, D being ``dim``.

    One of your own is a subclass with a ``forward``, registered in
    ``textmill.models.registries.feed_forwards``; it is built with ``dim``.
    """

    class Config(BlockConfig):
        """Settings that every feed-forward block has."""

        ffn_dim: int | None = None
        """Features between the projections; None takes ``model.ffn_dim``."""

        inherits = {"ffn_dim": "ffn_dim"}  # noqa: RUF012

        def __post_init__(self) -> None:
            require(self, sizes=["ffn_dim"])


@registries.feed_forwards.register("mlp")
@final
class Mlp(FeedForward):
    r"""Two projections around an activation (Vaswani et al. 2017, section 3.3).

    :math:`W_2 f(W_1 x + b_1) + b_2`.

    Example:
        >>> import torch
        >>> block = Mlp.Config(ffn_dim=32, activation="relu").build(dim=8)
        >>> block(torch.zeros(2, 3, 8)).shape
        torch.Size([2, 3, 8])
    """

    class Config(FeedForward.Config):
        """Settings of the two projections."""

        activation: Activation | None = None
        """The activation between them: relu, gelu (exact, by erf), gelu_tanh (GPT-2's) or silu;
        None takes ``model.activation``."""

        inherits = {"ffn_dim": "ffn_dim", "activation": "activation"}  # noqa: RUF012

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        ffn_dim = needed(config, "ffn_dim")
        self.activation = ACTIVATIONS[needed(config, "activation")]
        self.inner = LinearLayer(dim, ffn_dim)
        self.outer = LinearLayer(ffn_dim, dim)
        init_xavier(self.inner, self.outer)

    @override
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.outer(self.activation(self.inner(x)))
        return out


@registries.feed_forwards.register("gated")
@final
class Gated(FeedForward):
    r"""A projection gated by the activation of another one (Shazeer 2020).

    :math:`W_2 (f(W_g x + b_g) \odot (W_1 x + b_1)) + b_2`: SwiGLU with silu (Llama), GeGLU with
    gelu (T5 1.1), ReGLU with relu. It has three matrices where an ``mlp`` has two; two thirds of
    the ``ffn_dim`` make them equally large.

    Example:
        >>> import torch
        >>> Gated.Config(ffn_dim=32).build(dim=8)(torch.zeros(2, 3, 8)).shape
        torch.Size([2, 3, 8])
    """

    class Config(FeedForward.Config):
        """Settings of the gated block."""

        activation: Activation = "silu"
        """Of the gate: silu (SwiGLU), gelu or gelu_tanh (GeGLU), or relu (ReGLU).
        ``model.activation`` is not asked."""

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        ffn_dim = needed(config, "ffn_dim")
        self.activation = ACTIVATIONS[config.activation]
        self.gate = LinearLayer(dim, ffn_dim)
        self.inner = LinearLayer(dim, ffn_dim)
        self.outer = LinearLayer(ffn_dim, dim)
        init_xavier(self.gate, self.inner, self.outer)

    @override
    def forward(self, x: Tensor) -> Tensor:
        out: Tensor = self.outer(self.activation(self.gate(x)) * self.inner(x))
        return out
