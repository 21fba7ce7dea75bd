"""What transformers calls each parameter of our Transformers: one table, to write and to read.

Each name comes with a view of the parameter, or of the rows of it that have a name of their own
there: what is copied into a view is in the module.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

import torch
from torch import Tensor, nn

from textmill.models.causal_transformer import CausalTransformer
from textmill.models.layers.attention import CrossAttention, SelfAttention
from textmill.models.layers.feed_forward import Activation, Gated, Mlp
from textmill.models.layers.layer import LayerStack
from textmill.models.layers.positions import PositionTable
from textmill.models.layers.word_embeddings import Embedding
from textmill.models.transformer import Transformer

ACTIVATIONS: Final[dict[str, Activation]] = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "swish": "silu",
}
"""Textmill's activations by the names they have there."""


@dataclass(frozen=True)
class _Names:
    """What an architecture calls the parts of a stack; where nothing is said, as BART does."""

    prefix: str
    layers: str = "layers"
    last_norm: str = "layer_norm"
    tokens: str = "embed_tokens"
    positions: str = "embed_positions"
    attention: str = "self_attn"
    fused: str = ""
    """Queries, keys and values, where they are one matrix; such an architecture's are transposed.
    """
    out: str = "out_proj"
    attention_norm: str = "self_attn_layer_norm"
    gate: str = ""
    inner: str = "fc1"
    outer: str = "fc2"
    norm: str = "final_layer_norm"


_LLAMA: Final = {
    "prefix": "model.",
    "last_norm": "norm",
    "out": "o_proj",
    "attention_norm": "input_layernorm",
    "norm": "post_attention_layernorm",
}
DECODERS: Final = {
    "gpt2": _Names(
        prefix="transformer.",
        layers="h",
        last_norm="ln_f",
        tokens="wte",
        positions="wpe",
        attention="attn",
        fused="c_attn",
        out="c_proj",
        attention_norm="ln_1",
        inner="mlp.c_fc",
        outer="mlp.c_proj",
        norm="ln_2",
    ),
    "opt": _Names(prefix="model.decoder."),
    "llama": _Names(**_LLAMA, gate="mlp.gate_proj", inner="mlp.up_proj", outer="mlp.down_proj"),
    "starcoder2": _Names(**_LLAMA, inner="mlp.c_fc", outer="mlp.c_proj"),
}
"""Decoders. StarCoder2's layer is GPT-NeoX's, with heads that may share keys."""

Tensors = Iterator[tuple[str, Tensor]]


def named_tensors(module: Transformer | CausalTransformer, name: str) -> Tensors:
    """The parameters of a module as an architecture of transformers has them.

    Args:
        module: One that the architecture can be.
        name: Its ``model_type``: ``marian``, ``m2m_100``, ``pegasus``, ``blenderbot``, ``gpt2``,
            ``opt``, ``llama`` or ``starcoder2``.

    Returns:
        Names, and views; of what no parameter is there, a copy.

    Example:
        >>> from types import SimpleNamespace
        >>> tokenizer = SimpleNamespace(vocab_info=SimpleNamespace(size=9, pad_idx=0))
        >>> config = Transformer.Config(dim=4, num_heads=2, ffn_dim=6, norm_order="post")
        >>> found = dict(named_tensors(config.build(tokenizer=tokenizer), "marian"))
        >>> found["model.encoder.layers.0.self_attn.q_proj.weight"].shape
        torch.Size([4, 4])
    """
    if isinstance(module, Transformer):
        return _seq2seq_tensors(module, name)
    return _decoder_tensors(module, name)


def _seq2seq_tensors(module: Transformer, name: str) -> Tensors:
    tied = module.config.tie == "all"
    if name != "marian" or tied:
        yield "model.shared.weight", module.source.tokens.weight
    for side, front, stack in (
        ("encoder", module.source, module.encoder),
        ("decoder", module.target, module.decoder),
    ):
        names = _Names(f"model.{side}.")
        if not tied:
            yield f"{names.prefix}{names.tokens}.weight", front.tokens.weight
        if name != "m2m_100":  # whose positions are no part of its weights
            yield from _position_tensors(names, front)
        yield from _stack_tensors(names, stack)
    if not tied:
        yield "lm_head.weight", module.output_weight
    bias = module.output_bias
    if not isinstance(bias, Tensor):
        bias = torch.zeros(len(module.output_weight))
    if name != "m2m_100":
        yield "final_logits_bias", bias[None]


def _decoder_tensors(module: CausalTransformer, name: str) -> Tensors:
    names, front = DECODERS[name], module.text
    # What scales the vectors is no setting there; the output matrix is of unscaled ones.
    tokens = front.tokens.weight if front.scale == 1 else front.tokens.weight * front.scale
    yield f"{names.prefix}{names.tokens}.weight", tokens
    yield from _position_tensors(names, front, first=2 if name == "opt" else 0)
    yield from _stack_tensors(names, module.decoder)
    yield "lm_head.weight", module.output_weight


def _position_tensors(names: _Names, front: Embedding, *, first: int = 0) -> Tensors:
    """The table of positions; the first of them has the row ``first``."""
    positions = front.positions
    if isinstance(positions, PositionTable):
        table = positions.table[positions.offset :]
        padded = nn.functional.pad(table, (0, 0, first, 0)) if first else table
        yield f"{names.prefix}{names.positions}.weight", padded


def _stack_tensors(names: _Names, stack: LayerStack) -> Tensors:
    """All layers of an encoder or decoder, and the last normalization."""
    if not isinstance(stack.norm, nn.Identity):
        yield from _norm_tensors(f"{names.prefix}{names.last_norm}", stack.norm)
    for number, layer in enumerate(stack.layers):
        where = f"{names.prefix}{names.layers}.{number}."
        yield from _attention_tensors(
            where + names.attention, names, layer.get_submodule("attention")
        )
        norm = layer.get_submodule("attention_residual.norm")
        yield from _norm_tensors(where + names.attention_norm, norm)
        if hasattr(layer, "cross_attention"):
            cross = layer.get_submodule("cross_attention")
            yield from _attention_tensors(f"{where}encoder_attn", names, cross)
            norm = layer.get_submodule("cross_attention_residual.norm")
            yield from _norm_tensors(f"{where}encoder_attn_layer_norm", norm)
        block = layer.get_submodule("feed_forward")
        yield from _block_tensors(where, names, block)
        norm = layer.get_submodule("feed_forward_residual.norm")
        yield from _norm_tensors(where + names.norm, norm)


def _attention_tensors(where: str, names: _Names, module: nn.Module) -> Tensors:
    assert isinstance(module, SelfAttention | CrossAttention)
    yield from _linear_tensors(f"{where}.{names.out}", module.out, turned=bool(names.fused))
    if names.fused:
        assert isinstance(module, SelfAttention)
        yield from _linear_tensors(f"{where}.{names.fused}", module.qkv, turned=True)
        return
    fused = [module.qkv] if isinstance(module, SelfAttention) else [module.q, module.kv]
    for part, sides in zip(fused, ("qkv",) if len(fused) == 1 else ("q", "kv"), strict=True):
        sizes = [module.dim if side == "q" else module.kv_dim for side in sides]
        both = part.weight.split(sizes), part.bias.split(sizes)
        for side, weight, bias in zip(sides, *both, strict=True):
            yield f"{where}.{side}_proj.weight", weight
            yield f"{where}.{side}_proj.bias", bias


def _block_tensors(where: str, names: _Names, block: nn.Module) -> Tensors:
    assert isinstance(block, Mlp | Gated)
    turned = bool(names.fused)
    if isinstance(block, Gated):
        yield from _linear_tensors(where + names.gate, block.gate)
    yield from _linear_tensors(where + names.inner, block.inner, turned=turned)
    yield from _linear_tensors(where + names.outer, block.outer, turned=turned)


def _linear_tensors(where: str, linear: nn.Linear, *, turned: bool = False) -> Tensors:
    yield f"{where}.weight", linear.weight.T if turned else linear.weight
    yield f"{where}.bias", linear.bias


def _norm_tensors(where: str, norm: nn.Module) -> Tensors:
    yield from ((f"{where}.{name}", tensor) for name, tensor in norm.named_parameters())
