"""Models as ``transformers`` runs them: the same weights under its names.

A Transformer of textmill's becomes one of the architecture there that computes the same: which, its
settings decide. What none has is refused, by the name of the setting. A pretrained one is its own.
"""

import copy
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from torch import nn

from textmill.checkpoint.tensors import write_tensors
from textmill.inference.export.ctranslate2 import kind_of
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.huggingface.tensor_names import named_tensors
from textmill.models.layers.attention import MultiHead
from textmill.models.layers.feed_forward import Gated, Mlp
from textmill.models.layers.norms import LayerNorm, RMSNorm
from textmill.models.layers.positions import PositionTable, RotaryPositions, SinusoidalPositions
from textmill.models.lora import merged
from textmill.models.pretrained import silent_transformers
from textmill.models.transformer import Transformer
from textmill.runtime.disk import HashingFile

EPS: Final = 1e-5
"""Of the normalizations of architectures that have no setting for it."""


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
    if isinstance(module, PretrainedLanguageModel | PretrainedSeq2Seq):
        return []
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
    """What an activation is called there."""
    found = str(getattr(stack.layer.feed_forward, "activation", ""))
    return "gelu_pytorch_tanh" if found == "gelu_tanh" else found


def _is_plain(module: Transformer) -> bool:
    """Whether positions are the sines that Marian and Pegasus compute for themselves."""
    config, plain = module.config, SinusoidalPositions.Config()
    return config.encoder.positions == plain == config.decoder.positions


def _is_m2m_100(module: Transformer) -> bool:
    """Whether positions are the sines that M2M-100 and NLLB compute, and no score has a bias."""
    config = module.config
    offset = (config.pad_idx or 0) + 1
    wanted = SinusoidalPositions.Config(variant="tensor2tensor", offset=offset)
    alike = config.encoder.positions == wanted == config.decoder.positions
    return alike and config.tie == "all" and not config.output_bias


def model_type_of(module: nn.Module) -> str:
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
    if _is_plain(module):
        return "pegasus"
    # Blenderbot learns its positions: a table of any kind is written as if learned.
    return "m2m_100" if _is_m2m_100(module) else "blenderbot"


def write_model(module: nn.Module, folder: Path, *, special: dict[str, Any]) -> None:
    """Writes ``config.json`` and ``model.safetensors``.

    Args:
        module: The model, in which :func:`refusals` finds nothing.
        folder: The folder.
        special: The special ids that the config has: ``pad_token_id`` and so on.
    """
    from transformers import AutoConfig

    if isinstance(module, PretrainedLanguageModel | PretrainedSeq2Seq):
        _write_pretrained(module, folder, special)
        return
    name = model_type_of(module)
    if isinstance(module, Transformer):
        settings = _seq2seq_settings(module, name)
        head = "ForConditionalGeneration" if name != "marian" else "MTModel"
    else:
        assert isinstance(module, CausalTransformer)
        settings = _decoder_settings(module, name)
        head = "LMHeadModel" if name == "gpt2" else "ForCausalLM"
    config = AutoConfig.for_model(name, **settings, **special, dtype="float32")
    config.architectures = [type(config).__name__.removesuffix("Config") + head]
    config.save_pretrained(folder)
    with HashingFile(folder / "model.safetensors") as file:
        found = named_tensors(module, name)
        write_tensors(file, {each: tensor.detach().float() for each, tensor in found})


def _write_pretrained(
    module: PretrainedLanguageModel | PretrainedSeq2Seq, folder: Path, special: dict[str, Any]
) -> None:
    model: Any = merged(module).get_submodule("model")
    with silent_transformers():
        model.save_pretrained(folder)
    config = copy.deepcopy(model.config)
    config.update(special)
    config.save_pretrained(folder)
    for path in folder.glob("*.safetensors"):  # which the library lets nobody else read
        path.chmod((folder / "config.json").stat().st_mode)


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
