"""Textmill's Transformer as CTranslate2 runs it: the same weights under CTranslate2's names.

A setting that CTranslate2 cannot express is refused by its name.
"""

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from textmill.errors import UserError
from textmill.exported.ctranslate2 import names_of
from textmill.inference.export import ctranslate2_pretrained
from textmill.inference.export.ctranslate2_spec import save_seq2seq
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.layers.attention import CrossAttention, MultiHead, SelfAttention
from textmill.models.layers.feed_forward import Gated, Mlp
from textmill.models.layers.layer import Layer, LayerStack
from textmill.models.layers.positions import PositionTable, RotaryPositions
from textmill.models.layers.word_embeddings import Embedding
from textmill.models.transformer import Transformer
from textmill.text.tokenizers.tokenizer import VocabInfo


def refusals(module: nn.Module) -> list[str]:
    """What of a module CTranslate2 cannot compute, a line each; empty where it can all.

    Example:
        >>> refusals(nn.Linear(1, 1))
        ['the model must be a textmill.models.Transformer, but is a Linear']
    """
    if isinstance(module, PretrainedLanguageModel | PretrainedSeq2Seq):
        return ctranslate2_pretrained.refusals(module)
    if not isinstance(module, Transformer | CausalTransformer):
        found = type(module).__name__
        return [f"the model must be a textmill.models.Transformer, but is a {found}"]
    attention = module.config.attention
    if not isinstance(attention, MultiHead.Config):
        return [f"model.attention is a {kind_of(attention)}, not multi_head"]
    return []


def kind_of(config: Any) -> str:
    """How a recipe names the kind of a component."""
    owner = type(config).__qualname__.removesuffix(".Config")
    return owner or type(config).__name__


def write(
    module: nn.Module,
    folder: Path,
    *,
    vocab: VocabInfo,
    start_idx: int,
    quantization: str | None = None,
) -> None:
    """Writes a model in which :func:`refusals` finds nothing, as ``save_seq2seq`` does.

    Raises:
        UserError: The module cannot be written; says what of it.
    """
    if problems := refusals(module):
        raise UserError("CTranslate2 cannot run this model: " + "; ".join(problems) + ".")
    assert isinstance(module, Transformer)
    from ctranslate2.specs.transformer_spec import TransformerSpec

    with torch.no_grad():
        spec = TransformerSpec(_encoder_spec(module), _decoder_spec(module))
        _fill_front(spec.encoder, spec.encoder.embeddings[0], module.source)
        _fill_front(spec.decoder, spec.decoder.embeddings, module.target)
        _fill_stack(spec.encoder, module.encoder)
        _fill_stack(spec.decoder, module.decoder)
        spec.decoder.projection.weight = _numbers(module.output_weight)
    save_seq2seq(
        spec,
        module,
        folder,
        vocab=vocab,
        start_idx=start_idx,
        eps=module.config.eps,
        quantization=quantization,
    )


def write_causal(
    module: CausalTransformer, folder: Path, *, vocab: VocabInfo, quantization: str | None = None
) -> None:
    """Writes a language model, whose texts begin with the mark of an end; as :func:`write`."""
    from ctranslate2.specs.transformer_spec import (
        TransformerDecoderModelSpec,
        TransformerDecoderSpec,
    )

    config = module.config
    attention = config.attention
    assert isinstance(attention, MultiHead.Config), "others are refused"
    with torch.no_grad():
        decoder = TransformerDecoderSpec(
            config.num_layers,
            **_shared(config, module.text),
            num_heads_kv=attention.num_kv_heads or config.num_heads,
            with_encoder_attention=False,
        )
        _fill_front(decoder, decoder.embeddings, module.text)
        _fill_stack(decoder, module.decoder)
        decoder.projection.weight = _numbers(module.output_weight)
    names = names_of(vocab, rows=len(module.output_weight))
    spec = TransformerDecoderModelSpec(decoder)
    spec.register_vocabulary(names)
    spec.config.bos_token = spec.config.eos_token = names[vocab.eos_idx]
    spec.config.unk_token = names[vocab.unk_idx if vocab.unk_idx < len(names) else vocab.eos_idx]
    spec.config.layer_norm_epsilon = module.config.eps
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def _shared(config: Any, front: Embedding) -> dict[str, Any]:
    """What both kinds of stack are made with."""
    from ctranslate2.specs.common_spec import Activation

    activation = {
        "relu": Activation.RELU,
        "gelu": Activation.GELU,
        "gelu_tanh": Activation.GELUTanh,
        "silu": Activation.SWISH,
    }
    turned, positions = dict[str, Any](), front.positions
    if isinstance(positions, RotaryPositions):
        turned = {"rotary_dim": positions.cos.shape[1], "rotary_base": positions.base}
        turned["rotary_interleave"] = False
    return {
        **turned,
        "num_heads": config.num_heads,
        "pre_norm": config.norm_order == "pre",
        "activation": activation[config.activation],
        "ffn_glu": config.feed_forward == "gated",
        "rms_norm": config.norm == "rms_norm",
    }


def _encoder_spec(module: Transformer) -> Any:
    from ctranslate2.specs.transformer_spec import TransformerEncoderSpec

    config = module.config
    shared = _shared(config, module.source)
    spec = TransformerEncoderSpec(config.num_encoder_layers, **shared)
    if "rotary_dim" in shared:
        del spec.position_encodings  # the class of decoders leaves it out by itself
    return spec


def _decoder_spec(module: Transformer) -> Any:
    from ctranslate2.specs.transformer_spec import TransformerDecoderSpec

    config = module.config
    shared = _shared(config, module.target)
    return TransformerDecoderSpec(config.num_decoder_layers, **shared)


def _fill_front(side: Any, embeddings: Any, front: Embedding) -> None:
    """Token vectors and positions."""
    embeddings.weight = _numbers(front.tokens.weight)
    side.scale_embeddings = front.scale != 1.0
    if isinstance(front.positions, PositionTable):
        side.position_encodings.encodings = _numbers(
            front.positions.table[front.positions.offset :]
        )


def _fill_stack(side: Any, stack: LayerStack) -> None:
    """All layers of an encoder or decoder and the last normalization."""
    if not isinstance(stack.norm, nn.Identity):
        _fill_norm(side.layer_norm, stack.norm)
    for target, layer in zip(side.layer, stack.layers, strict=True):
        assert isinstance(layer, Layer)
        _fill_attention(target.self_attention, layer.get_submodule("attention"))
        _fill_norm(target.self_attention.layer_norm, layer.get_submodule("attention_residual.norm"))
        if hasattr(target, "attention"):
            _fill_attention(target.attention, layer.get_submodule("cross_attention"))
            norm = layer.get_submodule("cross_attention_residual.norm")
            _fill_norm(target.attention.layer_norm, norm)
        block = layer.get_submodule("feed_forward")
        _fill_feed_forward(target.ffn, block)
        _fill_norm(target.ffn.layer_norm, layer.get_submodule("feed_forward_residual.norm"))


def _fill_attention(target: Any, module: nn.Module) -> None:
    """Both fuse the projections of one input in the same order."""
    assert isinstance(module, SelfAttention | CrossAttention)
    fused = [module.qkv] if isinstance(module, SelfAttention) else [module.q, module.kv]
    for linear, ours in zip(target.linear, [*fused, module.out], strict=True):
        _fill_linear(linear, ours)
    if not hasattr(target, "num_heads_kv"):  # the layer has no word for heads that share keys
        keys_values = target.linear[-2]  # before the output: with the queries, or alone
        for name in ("weight", "bias"):
            kept, shared = np.split(getattr(keys_values, name), [-2 * module.kv_dim])
            heads = shared.reshape(2, module.num_kv_heads, module.head_dim, -1)
            own = heads.repeat(module.heads.num_heads // module.num_kv_heads, axis=1)
            setattr(keys_values, name, np.concatenate([kept, own.reshape(-1, *shared.shape[1:])]))


def _fill_feed_forward(target: Any, block: nn.Module) -> None:
    if isinstance(block, Gated):
        _fill_linear(target.linear_0, block.gate)
        _fill_linear(target.linear_0_noact, block.inner)
    else:
        assert isinstance(block, Mlp)
        _fill_linear(target.linear_0, block.inner)
    _fill_linear(target.linear_1, block.outer)


def _fill_linear(target: Any, linear: nn.Linear) -> None:
    target.weight = _numbers(linear.weight)
    target.bias = _numbers(linear.bias)


def _fill_norm(target: Any, norm: nn.Module) -> None:
    target.gamma = _numbers(norm.get_parameter("weight"))
    if isinstance(norm, nn.LayerNorm):
        target.beta = _numbers(norm.get_parameter("bias"))


def _numbers(tensor: Tensor) -> NDArray[Any]:
    """A copy: CTranslate2 quantizes in place."""
    return np.array(tensor.detach().float().cpu().numpy(), order="C")
