"""Gated feed-forward blocks (Shazeer 2020): SwiGLU, GeGLU, ReGLU."""

from typing import final

from torch import Tensor, nn
from typing_extensions import override

from weft.config import registries
from weft.models.layers.blocks import needed
from weft.models.layers.feed_forward import ACTIVATIONS, Activation, FeedForward, start
from weft.models.layers.linear import Linear

__all__ = ["Gated"]


@registries.feed_forwards.register("gated")
@final
class Gated(FeedForward):
    r"""A projection gated by the activation of another one (Shazeer 2020).

    :math:`W_2 (f(W_g x + b_g) \odot (W_1 x + b_1)) + b_2`: SwiGLU with silu (Llama), GeGLU with
    gelu (T5 1.1), ReGLU with relu. It has three matrices where an ``mlp`` has two; two thirds of
    the ``ffn_dim`` make them equally large.

    Args:
        config: The settings.
        dim: Features in and out, :math:`D`.

    Example:
        >>> import torch
        >>> Gated.Config(ffn_dim=32).build(dim=8)(torch.zeros(2, 3, 8)).shape
        torch.Size([2, 3, 8])
    """

    class Config(FeedForward.Config):
        """Settings of the gated block."""

        activation: Activation = "silu"
        """Of the gate: silu (SwiGLU), gelu (GeGLU) or relu (ReGLU). ``model.activation`` is not
        asked."""

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        ffn_dim = needed(config, "ffn_dim")
        self.activation = ACTIVATIONS[config.activation]
        self.gate = Linear(dim, ffn_dim)
        self.inner = Linear(dim, ffn_dim)
        self.outer = Linear(ffn_dim, dim)
        start(self.gate, self.inner, self.outer)

    @override
    def forward(self, x: Tensor) -> Tensor:
        """*Shape:* :math:`(*,D)` to :math:`(*,D)`."""
        out: Tensor = self.outer(self.activation(self.gate(x)) * self.inner(x))
        return out
