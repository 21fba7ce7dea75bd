"""Layers of an encoder and of a decoder, and stacks of them; one position at a time, too."""

from collections.abc import Callable
from functools import partial
from typing import Any, ClassVar, Final, Literal

from torch import Tensor, nn
from torch.nn import functional as F
from typing_extensions import override

from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.models.decoder_state import DecoderState
from textmill.models.layers.attention import Attention, CrossAttention, MultiHead, SelfAttention
from textmill.models.layers.dropout import Dropout
from textmill.models.layers.linear import LinearLayer, init_xavier
from textmill.models.layers.positions import (
    LearnedPositions,
    PositionEncoding,
    PositionName,
    RotaryPositions,
    SinusoidalPositions,
)
from textmill.models.layers.units import Units

Activation = Literal["relu", "gelu", "gelu_tanh", "silu"]
ACTIVATIONS: Final[dict[str, Callable[[Tensor], Tensor]]] = {
    "relu": F.relu,
    "gelu": F.gelu,
    "gelu_tanh": partial(F.gelu, approximate="tanh"),
    "silu": F.silu,
}


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

    def units(self) -> Units:
        return Units([self.inner], self.outer)


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

    def units(self) -> Units:
        return Units([self.gate, self.inner], self.outer)


NormOrder = Literal["pre", "post"]


class LayerConfig(BaseConfig):
    """What the layers of a Transformer are made of."""

    place: ClassVar[str] = "model"
    """Where these settings are, for messages."""

    num_heads: int = 4
    """Attention heads; the features of a layer must be divisible by it."""
    ffn_dim: int = 512
    """Features inside a feed-forward block; 4 times ``dim`` is usual."""
    dropout: float = 0.1
    """Probability of dropping a feature of an embedding or a block's output in training."""
    attention_dropout: float = 0.0
    """Probability of dropping an attention weight in training; over 0 is slower on CPU."""
    attention: Attention.Config = MultiHead.Config()
    """Kind of attention."""
    feed_forward: Literal["mlp", "gated"] = "mlp"
    """Feed-forward block: two projections around the activation (``mlp``), or one gated by the
    activation of another (``gated``; Shazeer 2020), which is half as large again."""
    activation: Activation = "relu"
    """Activation inside a feed-forward block: relu, gelu (exact, by erf), gelu_tanh (GPT-2's) or
    silu. A gated block with silu is SwiGLU, with gelu GeGLU."""
    norm: Literal["layer_norm", "rms_norm"] = "layer_norm"
    """Normalization: that of the layer (Ba et al. 2016), or by the root mean square, without mean
    and bias (Zhang and Sennrich 2019)."""
    norm_eps: float | None = None
    """Added below its root; null is 1e-5, of ``rms_norm`` 1e-6."""
    norm_order: NormOrder = "pre"
    """Normalization before each block and after the last layer (``pre``; stable at high learning
    rates, Xiong et al. 2020), or after each block (``post``; the original)."""
    positions: PositionName = "sinusoidal"
    """Position encodings: sines and cosines (Vaswani et al. 2017; Marian), the same with the
    frequencies of tensor2tensor (fairseq, M2M-100, NLLB), a trained table (BART), or a turn of
    queries and keys in self-attention (RoFormer, Su et al. 2021)."""
    position_offset: int = 0
    """Row of the first position in a table; fairseq's models keep 2 rows, so theirs is 2."""
    rotary_base: float = 10000.0
    """What the slowest turn of ``rotary`` follows from: longer sequences ask for more (Llama 3:
    500,000)."""
    max_length: int = 512
    """Longest text, in tokens."""

    def __post_init__(self) -> None:
        require(
            self,
            self.place,
            sizes=["num_heads", "ffn_dim", "max_length"],
            not_negative=["position_offset"],
            positive=["rotary_base"],
            shares=["dropout", "attention_dropout"],
        )
        if self.norm_eps is not None:
            require(self, self.place, positive=["norm_eps"])
        dim = getattr(self, "dim", None)
        if dim is not None and dim % self.num_heads:
            where = f"{self.place}." if self.place else ""
            raise UserError(
                f"{where}dim must be divisible by {where}num_heads, but dim is {dim} and num_heads "
                f"{self.num_heads}."
            )
        shared = getattr(self.attention, "num_kv_heads", None)
        if shared and self.num_heads % shared:
            raise UserError(
                "num_heads must be divisible by attention.num_kv_heads, but is "
                f"{self.num_heads}, and num_kv_heads {shared}."
            )

    @property
    def eps(self) -> float:
        usual = 1e-6 if self.norm == "rms_norm" else 1e-5
        return usual if self.norm_eps is None else self.norm_eps

    def make_positions(self, dim: int) -> PositionEncoding:
        """The position encoding of layers of ``dim`` features."""
        if self.positions == "rotary":
            size = dim // self.num_heads
            return RotaryPositions(size, max_length=self.max_length, base=self.rotary_base)
        given = {"max_length": self.max_length, "offset": self.position_offset}
        if self.positions == "learned":
            return LearnedPositions(dim, **given)
        tensor2tensor = self.positions == "sinusoidal_tensor2tensor"
        return SinusoidalPositions(
            dim, **given, variant="tensor2tensor" if tensor2tensor else "vaswani"
        )

    def make_heads(self) -> Attention:
        made: Attention = self.attention.build(
            num_heads=self.num_heads, dropout=self.attention_dropout
        )
        return made

    def make_norm(self, dim: int) -> nn.Module:
        return (nn.RMSNorm if self.norm == "rms_norm" else nn.LayerNorm)(dim, eps=self.eps)


class Residual(nn.Module):
    r"""Adds what a block makes of ``x`` to ``x``.

    ``pre``: :math:`x + \mathrm{drop}(f(\mathrm{norm}(x)))`, which trains stably at high learning
    rates (Xiong et al. 2020). ``post``: :math:`\mathrm{norm}(x + \mathrm{drop}(f(x)))`, the
    original (Vaswani et al. 2017).
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


class Layer(nn.Module):
    """Base of a Transformer's layers: self-attention, and a feed-forward block at the end."""

    def __init__(self, config: LayerConfig, dim: int, positions: PositionEncoding) -> None:
        super().__init__()
        rotary = positions if isinstance(positions, RotaryPositions) else None
        self.attention = SelfAttention(config.make_heads(), dim=dim, positions=rotary)
        self.attention_residual = self._residual(config, dim)
        self._add_blocks(config, dim)
        kind = Gated if config.feed_forward == "gated" else Mlp
        self.feed_forward = kind(dim, config.ffn_dim, config.activation)
        self.feed_forward_residual = self._residual(config, dim)

    def _add_blocks(self, config: LayerConfig, dim: int) -> None:
        """Makes what is between both."""

    def _residual(self, config: LayerConfig, dim: int) -> Residual:
        norm = config.make_norm(dim)
        return Residual(norm, order=config.norm_order, dropout=config.dropout)


class SelfAttentionLayer(Layer):
    """Self-attention and a feed-forward block, each in a residual connection."""

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


class TransformerDecoderLayer(Layer):
    """Self-attention, attention to the memory, and a feed-forward block."""

    @override
    def _add_blocks(self, config: LayerConfig, dim: int) -> None:
        self.cross_attention = CrossAttention(config.make_heads(), dim=dim)
        self.cross_attention_residual = self._residual(config, dim)

    @override
    def forward(
        self,
        x: Tensor,
        memory: Tensor,
        memory_mask: Tensor | None = None,
        mask: Tensor | None = None,
    ) -> Tensor:
        """Runs whole targets.

        *Shape:* :math:`(B,T,D)` and ``memory`` :math:`(B,S,D)` to :math:`(B,T,D)`; ``memory_mask``
        as in :class:`CrossAttention`, ``mask`` as in :class:`SelfAttention`, None: causal.
        """
        keys_values = self.cross_attention.project_memory(memory)
        x = self.attention_residual(x, lambda h: self.attention(h, mask, is_causal=mask is None))
        x = self.cross_attention_residual(
            x, lambda h: self.cross_attention(h, keys_values, memory_mask)
        )
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out

    def step(
        self,
        x: Tensor,
        cache: Tensor,
        position: int,
        *,
        keys_values: Tensor,
        memory_mask: Tensor | None,
    ) -> Tensor:
        """Runs one new position.

        *Shape:* :math:`(B,1,D)` to :math:`(B,1,D)`; ``cache`` and ``keys_values`` are those of
        :meth:`SelfAttention.step` and :meth:`CrossAttention.forward`.
        """
        x = self.attention_residual(x, lambda h: self.attention.step(h, cache, position))
        # Rows that share a memory (the beams of a source) are queries of one attention over it.
        x = x.view(keys_values.shape[1], -1, x.shape[-1])
        x = self.cross_attention_residual(
            x, lambda h: self.cross_attention(h, keys_values, memory_mask)
        )
        x = x.view(-1, 1, x.shape[-1])
        out: Tensor = self.feed_forward_residual(x, self.feed_forward)
        return out


class LayerStack(nn.Module):
    """Base of an encoder and a decoder: layers, with a last normalization if their order is pre.

    ``positions`` say how the stack's input knows of positions: rotary ones turn in every layer.
    """

    kind: type[Layer] = SelfAttentionLayer

    def __init__(
        self, config: LayerConfig, dim: int, *, num_layers: int, positions: PositionEncoding
    ) -> None:
        super().__init__()
        layers = [self.kind(config, dim, positions) for _ in range(num_layers)]
        self.layers: Any = nn.ModuleList(layers)
        self.norm = nn.Identity() if config.norm_order == "post" else config.make_norm(dim)

    @override
    def forward(self, x: Tensor, *rest: Tensor | bool | None) -> Tensor:
        """Runs all layers, which read ``rest`` too, and the last normalization.

        *Shape:* :math:`(B,T,D)` to :math:`(B,T,D)`.
        """
        for layer in self.layers:
            x = layer(x, *rest)
        out: Tensor = self.norm(x)
        return out


class TransformerEncoder(LayerStack):
    """Layers that read a whole text, from both sides, and a mask as :class:`SelfAttention` does."""


class TransformerDecoder(LayerStack):
    """Layers that read a target (up to each position, or what a mask says), and a memory."""

    kind = TransformerDecoderLayer


class CausalDecoder(LayerStack):
    """Layers in which every position sees itself and those before it (GPT), or what a mask says."""

    @override
    def forward(self, x: Tensor, *rest: Tensor | bool | None) -> Tensor:
        """*Shape:* :math:`(B,T,D)` to the same; a mask is as for :meth:`SelfAttention.forward`."""
        mask = rest[0] if rest else None
        return super().forward(x, mask, mask is None)

    def start(self, like: Tensor) -> DecoderState:
        """A state in which nothing was read, with a row for each of ``like``, and no memory."""
        attention = self.layers[0].attention
        sizes = (2, like.shape[0], attention.num_kv_heads, 0, attention.head_dim)
        return DecoderState([like.new_zeros(sizes)] * len(self.layers), None)

    def step(self, x: Tensor, state: DecoderState) -> Tensor:
        """Runs one new position; the state moves on. *Shape:* :math:`(B,1,D)` to the same."""
        for number, layer in enumerate(self.layers):
            x = layer.step(x, state.self_cache(number), state.position)
        state.position += 1
        out: Tensor = self.norm(x)
        return out
