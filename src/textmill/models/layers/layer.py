"""Layers of an encoder and of a decoder: what they have in common, and a stack of them."""

from collections.abc import Callable, Iterable
from typing import Any, Literal, final

from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.validators import require
from textmill.models.layers.attention import Attention, MultiHead, SelfAttention
from textmill.models.layers.blocks import BlockConfig, needed
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.feed_forward import FeedForward, Mlp
from textmill.models.layers.norms import LayerNorm, Norm
from textmill.models.layers.positions import PositionEncoding, RotaryPositions

NormOrder = Literal["pre", "post"]


@final
class Residual(nn.Module):
    r"""Adds what a block makes of ``x`` to ``x``.

    ``pre``: :math:`x + \mathrm{drop}(f(\mathrm{norm}(x)))`, which trains stably at high learning
    rates (Xiong et al. 2020). ``post``: :math:`\mathrm{norm}(x + \mathrm{drop}(f(x)))`, the
    original (Vaswani et al. 2017).

    Args:
        norm: The normalization; the residual owns it.
        order: Where it stands.
        dropout: Probability of dropping a feature of the block's output in training.

    Example:
        >>> import torch
        >>> Residual(nn.LayerNorm(2), order="pre")(torch.ones(1, 2), lambda h: h + 1).tolist()
        [[2.0, 2.0]]
    """

    def __init__(self, norm: nn.Module, *, order: NormOrder, dropout: float = 0.0) -> None:
        super().__init__()
        self.norm = norm
        self.order = order
        self.dropout = Dropout(dropout)

    @override
    def forward(self, x: Tensor, block: Callable[[Tensor], Tensor]) -> Tensor:
        """*Shape:* :math:`(*,D)` to :math:`(*,D)`."""
        if self.order == "pre":
            return self.dropout.add_to(x, block(self.norm(x)))
        out: Tensor = self.norm(self.dropout.add_to(x, block(x)))
        return out


class Layer(Component, nn.Module):
    """Base of a Transformer's layers: blocks, each in a residual connection.

    Its settings are filled, none of them is None: see
    :func:`textmill.models.layers.blocks.inherit`.
    """

    class Config(BlockConfig):
        """Which blocks a layer has, and their settings."""

        attention: Attention.Config = MultiHead.Config()
        """The self-attention."""
        feed_forward: FeedForward.Config = Mlp.Config()
        """The feed-forward block."""
        norm: Norm.Config = LayerNorm.Config()
        """The normalization of every block, and of the stack's end."""
        norm_order: NormOrder | None = None
        """Whether it stands before or after a block; None takes ``model.norm_order``."""
        dropout: float | None = None
        """Probability of dropping a feature of a block's output in training; None takes
        ``model.dropout``."""

        inherits = {"norm_order": "norm_order", "dropout": "dropout"}  # noqa: RUF012

        def __post_init__(self) -> None:
            require(self, shares=["dropout"])

    def __init__(self, config: Config, *, dim: int) -> None:
        nn.Module.__init__(self)
        self.config, self.dim = config, dim

    def residual(self) -> Residual:
        """The connection around a block, with a normalization of its own."""
        return Residual(
            self.config.norm.build(dim=self.dim),
            order=needed(self.config, "norm_order"),
            dropout=needed(self.config, "dropout"),
        )


class LayerStack(Component, nn.Module):
    """Base of an encoder and a decoder: layers, with a last normalization if their order is pre.

    Args:
        config: The settings; none of them None.
        dim: Features of a token.
        num_layers: Number of layers, at least one.
        positions: How the stack's input knows of positions: rotary ones turn in every layer.
    """

    class Config(BlockConfig):
        """Settings of a stack of layers."""

        positions: PositionEncoding.Config | None = None
        """Position encoding: sinusoidal, learned or rotary; None takes ``model.positions``."""
        layer: Layer.Config = Layer.Config()
        """Settings of each layer."""

        inherits = {"positions": "positions"}  # noqa: RUF012

    def __init__(
        self,
        config: Config,
        *,
        dim: int,
        num_layers: int,
        positions: PositionEncoding,
    ) -> None:
        nn.Module.__init__(self)
        rotary = positions if isinstance(positions, RotaryPositions) else None
        self.layers = nn.ModuleList(
            [config.layer.build(dim=dim, positions=rotary) for _ in range(num_layers)]
        )
        post = config.layer.norm_order == "post"
        self.norm = nn.Identity() if post else config.layer.norm.build(dim=dim)

    def each_layer(self) -> Iterable[Any]:
        """The layers, first to last."""
        return self.layers

    def run(self, x: Tensor, *rest: Tensor | bool | None) -> Tensor:
        """All layers, which read ``rest`` too, and the last normalization.

        *Shape:* :math:`(B,T,D)` to :math:`(B,T,D)`.
        """
        for layer in self.layers:
            x = layer(x, *rest)
        out: Tensor = self.norm(x)
        return out


@final
class SelfAttentionLayer(Layer):
    """Self-attention and a feed-forward block, each in a residual connection.

    Args:
        config: The settings; none of them None.
        dim: Features in and out, :math:`D`.
        positions: Turns the queries and keys of self-attention; None does not.
    """

    def __init__(
        self, config: Layer.Config, *, dim: int, positions: RotaryPositions | None = None
    ) -> None:
        super().__init__(config, dim=dim)
        self.attention = SelfAttention(config.attention.build(), dim=dim, positions=positions)
        self.attention_residual = self.residual()
        self.feed_forward = config.feed_forward.build(dim=dim)
        self.feed_forward_residual = self.residual()

    @override
    def forward(self, x: Tensor, mask: Tensor | None = None, is_causal: bool = False) -> Tensor:
        """Runs whole sequences; arguments and shapes as in :class:`SelfAttention`."""
        x = self.attention_residual(x, lambda h: self.attention(h, mask, is_causal=is_causal))
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out

    def step(self, x: Tensor, cache: Tensor, position: int) -> Tensor:
        """Runs one new position; arguments and shapes as in :meth:`SelfAttention.step`."""
        x = self.attention_residual(x, lambda h: self.attention.step(h, cache, position))
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out
