"""Models as ``transformers`` runs them: the same weights under its names.

A Transformer of textmill's becomes one of the architecture there that computes the same: which, its
settings decide. What none has is refused, by the name of the setting. A pretrained one is its own.
"""

import copy
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from torch import nn

from textmill.checkpoint.tensors import write_tensors
from textmill.exported.manifest import ExportError
from textmill.inference.export.ctranslate2 import kind_of
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.decoders.pretrained_transformer import named_tensors
from textmill.models.layers.attention import MultiHead
from textmill.models.lora import merged
from textmill.models.pretrained import silent_transformers
from textmill.models.transformer import Transformer
from textmill.runtime.disk import HashingFile

EPS: Final = 1e-5
"""Of the normalizations of architectures that have no setting for it."""


def refusals(module: nn.Module) -> list[str]:
    """What of a module no architecture of ``transformers`` computes, a line each."""
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
    if config.positions == "rotary":
        yield "model.positions is rotary, not a table of positions"
    yield from _plain_refusals(config)
    if config.norm_order == "post" and not _is_plain(config):
        yield "model.norm_order is post: its positions must be sinusoidal, of no offset (Marian)"


def _decoder_refusals(module: CausalTransformer) -> Iterator[str]:
    config = module.config
    if config.positions != "rotary":
        yield from _plain_refusals(config)
        return
    if config.norm_order == "post":
        yield "model.norm_order is post with rotary positions, which turn in pre-norm layers alone"
    if not isinstance(config.attention, MultiHead.Config):
        yield f"model.attention is a {kind_of(config.attention)}, not multi_head"
    if (config.norm, config.feed_forward) not in (("rms_norm", "gated"), ("layer_norm", "mlp")):
        yield (
            f"model.norm is {config.norm} and model.feed_forward {config.feed_forward}: rms_norm "
            "goes with gated (Llama), layer_norm with mlp"
        )


def _plain_refusals(config: Transformer.Config | CausalTransformer.Config) -> Iterator[str]:
    """What of layers is not BART's, or GPT-2's, which says the number below the root."""
    free = isinstance(config, CausalTransformer.Config) and config.norm_order == "pre"
    if config.feed_forward != "mlp":
        yield f"model.feed_forward is {config.feed_forward}, not mlp"
    if config.norm != "layer_norm":
        yield f"model.norm is {config.norm}, not layer_norm"
    elif config.eps != EPS and not free:
        yield f"model.norm_eps is {config.eps}, not {EPS}"
    attention = config.attention
    if not isinstance(attention, MultiHead.Config):
        yield f"model.attention is a {kind_of(attention)}, not multi_head"
    elif attention.num_kv_heads not in (None, config.num_heads):
        yield f"model.attention.num_kv_heads is {attention.num_kv_heads}: no heads may share keys"


def _activation(config: Transformer.Config | CausalTransformer.Config) -> str:
    """What an activation is called there."""
    return "gelu_pytorch_tanh" if config.activation == "gelu_tanh" else config.activation


def _is_plain(config: Transformer.Config) -> bool:
    """Whether positions are the sines that Marian and Pegasus compute for themselves."""
    return config.positions == "sinusoidal" and not config.position_offset


def model_type_of(module: nn.Module) -> str:
    """The architecture of ``transformers`` that a module becomes, by its ``model_type`` there.

    Args:
        module: One in which :func:`refusals` finds nothing.
    """
    if isinstance(module, CausalTransformer):
        layers = module.config
        if layers.positions == "rotary":
            return "llama" if layers.norm == "rms_norm" else "starcoder2"
        return "opt" if layers.norm_order == "post" else "gpt2"
    assert isinstance(module, Transformer)
    config = module.config
    if config.norm_order == "post":
        return "marian"
    if _is_plain(config):
        return "pegasus"
    # The sines that M2M-100 and NLLB compute; no score of theirs has a bias.
    sines = config.positions == "sinusoidal_tensor2tensor"
    theirs = sines and config.position_offset == (config.pad_idx or 0) + 1
    # Blenderbot learns its positions: a table of any kind is written as if learned.
    fits = theirs and config.tie == "all" and not config.output_bias
    return "m2m_100" if fits else "blenderbot"


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
        "activation_function": _activation(config),
        "dropout": config.dropout,
        "attention_dropout": config.attention_dropout,
        "scale_embedding": config.scale_embedding,
        "tie_word_embeddings": config.tie == "all",
        "forced_eos_token_id": None,
    }
    for side, layers in (
        ("encoder", config.num_encoder_layers),
        ("decoder", config.num_decoder_layers),
    ):
        settings[f"{side}_layers"] = layers
        settings[f"{side}_attention_heads"] = config.num_heads
        settings[f"{side}_ffn_dim"] = config.ffn_dim
    if name == "marian":
        settings["share_encoder_decoder_embeddings"] = config.tie == "all"
    return settings | ({"encoder_no_repeat_ngram_size": 0} if name == "blenderbot" else {})


def _decoder_settings(module: CausalTransformer, name: str) -> dict[str, Any]:
    config, ffn_dim = module.config, module.config.ffn_dim
    shared = {"vocab_size": len(module.output_weight), "tie_word_embeddings": False}
    sizes: dict[str, Any] = {
        "hidden_size": config.dim,
        "num_hidden_layers": config.num_layers,
        "num_attention_heads": config.num_heads,
        "max_position_embeddings": config.max_length,
    }
    if name in ("gpt2", "opt"):
        sizes["activation_function"] = _activation(config)
    if name == "gpt2":  # whose config knows the names of sizes above too
        return {**shared, **sizes, "n_inner": ffn_dim, "layer_norm_epsilon": config.eps}
    if name == "opt":
        return {**shared, **sizes, "ffn_dim": ffn_dim, "do_layer_norm_before": False}
    kv_heads = getattr(config.attention, "num_kv_heads", None) or config.num_heads
    sizes |= {
        "intermediate_size": ffn_dim,
        "hidden_act": _activation(config),
        "num_key_value_heads": kv_heads,
        "rope_parameters": {"rope_type": "default", "rope_theta": config.rotary_base},
    }
    if name == "llama":
        more = {"attention_bias": True, "mlp_bias": True, "rms_norm_eps": config.eps}
    else:
        more = {"norm_epsilon": config.eps}
    return {**shared, **sizes, **more}


def loaded(loader: str, folder: Path, **options: Any) -> tuple[Any, Any]:
    """The model and the tokenizer of a folder, as ``from_pretrained`` loads them.

    Args:
        loader: The class that does, as ``AutoModelForCausalLM``.
        folder: The folder.
        options: What it is called with.

    """
    import transformers

    with silent_transformers():
        kind = getattr(transformers, loader)
        model, info = kind.from_pretrained(folder, output_loading_info=True, **options)
    if wrong := {name: found for name, found in info.items() if found}:
        raise ExportError(f"transformers does not load all weights as they are: {wrong}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Marian's says that Moses' rules are not installed
        return model.eval(), transformers.AutoTokenizer.from_pretrained(folder)
