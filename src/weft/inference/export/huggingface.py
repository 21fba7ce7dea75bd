"""Weft's Transformers as ``transformers`` runs them: the same weights under its names.

A model becomes one of the architecture there that computes the same: which, its settings decide.
What none has is refused, by the name of the setting.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import torch
from torch import Tensor, nn

from weft.checkpoint.tensors import write_tensors
from weft.inference.export.ctranslate2 import kind_of
from weft.models.causal_transformer import CausalTransformer
from weft.models.layers.attention import CrossAttention, MultiHead, SelfAttention
from weft.models.layers.feed_forward import FeedForward, Gated, Mlp
from weft.models.layers.layer import LayerStack
from weft.models.layers.norms import LayerNorm, RMSNorm
from weft.models.layers.positions import PositionTable, RotaryPositions, SinusoidalPositions
from weft.models.layers.word_embeddings import Embedding
from weft.models.transformer import Transformer
from weft.runtime.disk import HashingFile

__all__ = ["refusals", "write_model"]

EPS: Final = 1e-5
"""Of the normalizations of architectures that have no setting for it."""


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


def refusals(module: nn.Module) -> list[str]:
    """What of a module no architecture of ``transformers`` computes, a line each.

    Example:
        >>> refusals(nn.Linear(1, 1))
        ['the model must be a Transformer or a CausalTransformer, but is a Linear']
    """
    if isinstance(module, Transformer):
        return [*_seq2seq_refusals(module)]
    if isinstance(module, CausalTransformer):
        return [*_decoder_refusals(module)]
    found = type(module).__name__
    return [f"the model must be a Transformer or a CausalTransformer, but is a {found}"]


def _seq2seq_refusals(module: Transformer) -> Iterator[str]:
    config = module.config
    for name, stack in (("encoder", config.encoder), ("decoder", config.decoder)):
        where, layer = f"model.{name}", stack.layer
        if not isinstance(stack.positions, PositionTable.Config):
            yield f"{where}.positions is a {kind_of(stack.positions)}, not a table of positions"
        yield from _block_refusals(f"{where}.layer", layer, eps=EPS)
        yield from _head_refusals(f"{where}.layer.attention", layer.attention)
    own, cross = config.decoder.layer.attention, config.decoder.layer.cross_attention
    yield from _head_refusals("model.decoder.layer.cross_attention", cross)
    if cross.num_heads != own.num_heads:
        yield (
            f"model.decoder.layer.cross_attention.num_heads is {cross.num_heads}, but "
            f"model.decoder.layer.attention.num_heads {own.num_heads}: they must be alike"
        )
    orders = config.encoder.layer.norm_order, config.decoder.layer.norm_order
    if orders[0] != orders[1]:
        yield "model.encoder.layer.norm_order and model.decoder.layer.norm_order must be alike"
    if "post" in orders and not _is_plain(module):
        yield "model.norm_order is post: its positions must be sinusoidal, of no offset (Marian)"
    if len({_activation(config.encoder), _activation(config.decoder)}) > 1:
        yield "the activations of model.encoder and model.decoder must be alike"


def _decoder_refusals(module: CausalTransformer) -> Iterator[str]:
    config, where = module.config.decoder, "model.decoder.layer"
    layer = config.layer
    if isinstance(config.positions, PositionTable.Config):
        post = layer.norm_order == "post"
        yield from _block_refusals(where, layer, eps=EPS if post else None)
        yield from _head_refusals(f"{where}.attention", layer.attention)
        return
    if not isinstance(config.positions, RotaryPositions.Config):
        yield f"model.decoder.positions is a {kind_of(config.positions)}, not one of the library's"
    if layer.norm_order == "post":
        yield "model.norm_order is post with rotary positions, which turn in pre-norm layers alone"
    if not isinstance(layer.attention, MultiHead.Config):
        yield f"{where}.attention is a {kind_of(layer.attention)}, not multi_head"
    kinds = type(layer.norm), type(layer.feed_forward)
    if kinds not in ((RMSNorm.Config, Gated.Config), (LayerNorm.Config, Mlp.Config)):
        yield (
            f"{where}.norm is a {kind_of(layer.norm)} and {where}.feed_forward is "
            f"a {kind_of(layer.feed_forward)}: rms_norm goes with gated (Llama), layer_norm with "
            "mlp"
        )


def _block_refusals(where: str, layer: Any, *, eps: float | None) -> Iterator[str]:
    if not isinstance(layer.feed_forward, Mlp.Config):
        yield f"{where}.feed_forward is a {kind_of(layer.feed_forward)}, not mlp"
    if not isinstance(layer.norm, LayerNorm.Config):
        yield f"{where}.norm is a {kind_of(layer.norm)}, not layer_norm"
    elif eps is not None and layer.norm.eps != eps:
        yield f"{where}.norm.eps is {layer.norm.eps}, not {eps}"


def _head_refusals(where: str, attention: Any) -> Iterator[str]:
    if not isinstance(attention, MultiHead.Config):
        yield f"{where} is a {kind_of(attention)}, not multi_head"
    elif attention.num_kv_heads not in (None, attention.num_heads):
        yield f"{where}.num_kv_heads is {attention.num_kv_heads}: no heads may share keys"


def _activation(stack: Any) -> str:
    return str(getattr(stack.layer.feed_forward, "activation", ""))


def _is_plain(module: Transformer) -> bool:
    """Whether positions are the sines that Marian and Pegasus compute for themselves."""
    config, plain = module.config, SinusoidalPositions.Config()
    return config.encoder.positions == plain == config.decoder.positions


def architecture_of(module: nn.Module) -> str:
    """The architecture of ``transformers`` that a module becomes, by its ``model_type`` there.

    Args:
        module: One in which :func:`refusals` finds nothing.
    """
    if isinstance(module, CausalTransformer):
        layer = module.config.decoder.layer
        if isinstance(module.config.decoder.positions, RotaryPositions.Config):
            return "llama" if isinstance(layer.norm, RMSNorm.Config) else "starcoder2"
        return "opt" if layer.norm_order == "post" else "gpt2"
    assert isinstance(module, Transformer)
    if module.config.encoder.layer.norm_order == "post":
        return "marian"
    # Blenderbot learns its positions: a table of any kind is written as if learned.
    return "pegasus" if _is_plain(module) else "blenderbot"


def write_model(module: nn.Module, folder: Path, *, special: dict[str, Any]) -> None:
    """Writes ``config.json`` and ``model.safetensors``.

    Args:
        module: The model, in which :func:`refusals` finds nothing.
        folder: The folder.
        special: The special ids that the config has: ``pad_token_id`` and so on.
    """
    from transformers import AutoConfig

    name = architecture_of(module)
    if isinstance(module, Transformer):
        tensors, settings = _seq2seq_tensors(module, name), _seq2seq_settings(module, name)
        head = "ForConditionalGeneration" if name != "marian" else "MTModel"
    else:
        assert isinstance(module, CausalTransformer)
        tensors, settings = _decoder_tensors(module, name), _decoder_settings(module, name)
        head = "LMHeadModel" if name == "gpt2" else "ForCausalLM"
    config = AutoConfig.for_model(name, **settings, **special, dtype="float32")
    config.architectures = [type(config).__name__.removesuffix("Config") + head]
    config.save_pretrained(folder)
    with HashingFile(folder / "model.safetensors") as file:
        write_tensors(file, {each: tensor.detach().float() for each, tensor in tensors})


def _seq2seq_settings(module: Transformer, name: str) -> dict[str, Any]:
    config = module.config
    settings: dict[str, Any] = {
        "vocab_size": config.vocabulary_size,
        "d_model": config.dim,
        "max_position_embeddings": config.max_length,
        "activation_function": _activation(config.encoder),
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "scale_embedding": config.scale_embedding,
        "tie_word_embeddings": config.tie == "all",
        "forced_eos_token_id": None,
    }
    for side, layers, stack in (
        ("encoder", config.num_encoder_layers, config.encoder),
        ("decoder", config.num_decoder_layers, config.decoder),
    ):
        settings[f"{side}_layers"] = layers
        settings[f"{side}_attention_heads"] = stack.layer.attention.num_heads
        settings[f"{side}_ffn_dim"] = _ffn_dim(stack)
    if name == "marian":
        settings["share_encoder_decoder_embeddings"] = config.tie == "all"
    return settings | ({"encoder_no_repeat_ngram_size": 0} if name == "blenderbot" else {})


def _decoder_settings(module: CausalTransformer, name: str) -> dict[str, Any]:
    config, stack = module.config, module.config.decoder
    attention, ffn_dim = stack.layer.attention, _ffn_dim(stack)
    shared = {"vocab_size": len(module.output_weight), "tie_word_embeddings": False}
    sizes: dict[str, Any] = {
        "hidden_size": config.dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": attention.num_heads,
        "max_position_embeddings": config.max_length,
    }
    if name in ("gpt2", "opt"):
        sizes["activation_function"] = _activation(stack)
    if name == "gpt2":  # whose config knows the names of sizes above too
        return {**shared, **sizes, "n_inner": ffn_dim, "layer_norm_epsilon": stack.layer.norm.eps}
    if name == "opt":
        return {**shared, **sizes, "ffn_dim": ffn_dim, "do_layer_norm_before": False}
    positions = stack.positions
    assert isinstance(positions, RotaryPositions.Config)
    kv_heads = getattr(attention, "num_kv_heads", None) or attention.num_heads
    sizes |= {
        "intermediate_size": ffn_dim,
        "hidden_act": _activation(stack),
        "num_key_value_heads": kv_heads,
        "rope_parameters": {"rope_type": "default", "rope_theta": positions.base},
    }
    if name == "llama":
        more = {"attention_bias": True, "mlp_bias": True, "rms_norm_eps": stack.layer.norm.eps}
    else:
        more = {"norm_epsilon": stack.layer.norm.eps}
    return {**shared, **sizes, **more}


def _ffn_dim(stack: Any) -> int:
    return int(stack.layer.feed_forward.ffn_dim)


Tensors = Iterable[tuple[str, Tensor]]


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
        yield from _position_tensors(names, front)
        yield from _stack_tensors(names, stack)
    if not tied:
        yield "lm_head.weight", module.output_weight
    bias = module.output_bias
    if not isinstance(bias, Tensor):
        bias = torch.zeros(len(module.output_weight))
    yield "final_logits_bias", bias[None]


def _decoder_tensors(module: CausalTransformer, name: str) -> Tensors:
    names, front = DECODERS[name], module.text
    # What scales the vectors is no setting there; the output matrix is of unscaled ones.
    yield f"{names.prefix}{names.tokens}.weight", front.tokens.weight * front.scale
    yield from _position_tensors(names, front, first=2 if name == "opt" else 0)
    yield from _stack_tensors(names, module.decoder)
    yield "lm_head.weight", module.output_weight


def _position_tensors(names: _Names, front: Embedding, *, first: int = 0) -> Tensors:
    """The table of positions; the first of them has the row ``first``."""
    positions = front.positions
    if isinstance(positions, PositionTable):
        table = positions.table[positions.offset :]
        yield f"{names.prefix}{names.positions}.weight", nn.functional.pad(table, (0, 0, first, 0))


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
        assert isinstance(block, FeedForward)
        yield from _block_tensors(where, names, block)
        norm = layer.get_submodule("feed_forward_residual.norm")
        yield from _norm_tensors(where + names.norm, norm)


def _attention_tensors(where: str, names: _Names, module: nn.Module) -> Tensors:
    assert isinstance(module, SelfAttention | CrossAttention)
    turned = bool(names.fused)
    yield from _linear_tensors(f"{where}.{names.out}", module.out, turned=turned)
    fused = [module.qkv] if isinstance(module, SelfAttention) else [module.q, module.kv]
    weight = torch.cat([linear.weight for linear in fused])
    bias = torch.cat([linear.bias for linear in fused])
    if turned:
        yield f"{where}.{names.fused}.weight", weight.T
        yield f"{where}.{names.fused}.bias", bias
        return
    sizes = [module.dim, module.kv_dim, module.kv_dim]
    for name, rows, offsets in zip("qkv", weight.split(sizes), bias.split(sizes), strict=True):
        yield f"{where}.{name}_proj.weight", rows
        yield f"{where}.{name}_proj.bias", offsets


def _block_tensors(where: str, names: _Names, block: FeedForward) -> Tensors:
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
