"""Our own Transformers with the weights of published ones: Marian, NLLB, Pegasus, GPT-2, Llama.

Source: Junczys-Dowmunt et al. 2018 (Marian), Fan et al. 2020 (M2M-100), NLLB Team 2022, Zhang et
al. 2019 (Pegasus), Radford et al. 2019 (GPT-2), Touvron et al. 2023 (Llama).
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.config.component import Component
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.layers.attention import CrossAttention, MultiHead, SelfAttention
from textmill.models.layers.layer import Activation, Gated, LayerStack, Mlp
from textmill.models.layers.positions import PositionTable
from textmill.models.layers.word_embeddings import Embedding
from textmill.models.pretrained import (
    CheckpointConfig,
    banned_ids,
    building,
    load_pretrained,
    pretrained_config,
    refuse_misfits,
    vocabulary_of,
)
from textmill.models.transformer import Transformer
from textmill.models.vocabulary import HasVocabInfo, rows_needed

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
    "llama": _Names(
        prefix="model.",
        last_norm="norm",
        out="o_proj",
        attention_norm="input_layernorm",
        gate="mlp.gate_proj",
        inner="mlp.up_proj",
        outer="mlp.down_proj",
        norm="post_attention_layernorm",
    ),
}

Tensors = Iterator[tuple[str, Tensor]]


def named_tensors(module: Transformer | CausalTransformer, name: str) -> Tensors:
    """Views of a module's parameters by their names in an architecture of transformers.

    The architecture, by its ``model_type``, is one that the module can be: ``marian``, ``m2m_100``,
    ``pegasus``, ``blenderbot``, ``gpt2`` or ``llama``.
    """
    if isinstance(module, CausalTransformer):
        names, front = DECODERS[name], module.text
        yield f"{names.prefix}{names.tokens}.weight", front.tokens.weight
        yield from _position_tensors(names, front)
        yield from _stack_tensors(names, module.decoder)
        yield "lm_head.weight", module.output_weight
        return
    yield "model.shared.weight", module.source.tokens.weight
    for side, front, stack in (
        ("encoder", module.source, module.encoder),
        ("decoder", module.target, module.decoder),
    ):
        names = _Names(f"model.{side}.")
        if name != "m2m_100":  # whose positions are no part of its weights
            yield from _position_tensors(names, front)
        yield from _stack_tensors(names, stack)
    if isinstance(module.output_bias, Tensor):
        yield "final_logits_bias", module.output_bias[None]


def _position_tensors(names: _Names, front: Embedding) -> Tensors:
    positions = front.positions
    if isinstance(positions, PositionTable):
        yield f"{names.prefix}{names.positions}.weight", positions.table[positions.offset :]


def _stack_tensors(names: _Names, stack: LayerStack) -> Tensors:
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


OwnConfig = Transformer.Config | CausalTransformer.Config

SEQ2SEQ: Final[Mapping[str, Mapping[str, Any]]] = {
    "blenderbot": {"positions": "learned", "output_bias": True},
    "m2m_100": {"positions": "sinusoidal_tensor2tensor"},
    "marian": {"norm_order": "post", "output_bias": True},
    "pegasus": {"output_bias": True},
}
"""What of an architecture is in no setting of its ``config.json``."""
SIZES: Final = {
    "dim": "d_model",
    "num_encoder_layers": "encoder_layers",
    "num_decoder_layers": "decoder_layers",
    "num_heads": "encoder_attention_heads",
    "ffn_dim": "encoder_ffn_dim",
    "max_length": "max_position_embeddings",
    "dropout": "dropout",
    "attention_dropout": "attention_dropout",
    "scale_embedding": "scale_embedding",
}
"""Settings of an encoder-decoder, and what they are called there."""


@registries.models.register("pretrained_transformer")
class PretrainedTransformer(Component):
    """Makes textmill's own Transformer of a published one, with its weights and sizes.

    A Marian (OPUS-MT), M2M-100 (NLLB), Pegasus or Blenderbot becomes a
    :class:`~textmill.models.transformer.Transformer`, a GPT-2 or Llama a
    :class:`~textmill.models.causal_transformer.CausalTransformer`: what they compute is the same,
    what is trained is faster. A fresh run begins with the weights of ``path``; the run keeps its
    sizes and its own weights, and needs the path no more to answer.
    """

    class Config(CheckpointConfig):
        attention_dropout: float | None = None
        """Probability of dropping an attention weight, in place of the model's own; over 0 is
        slower on CPU."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, tokenizer: HasVocabInfo
        ) -> Transformer | CausalTransformer:
            """Makes the model; its weights are read when a run begins."""
            architecture = self.read_architecture()
            with building(architecture, self):
                config: Any = own_config(architecture, self.path)
                _refuse_tokenizer(architecture, tokenizer, self.path)
                info, size = tokenizer.vocab_info, vocabulary_of(architecture, self.path)
                # What generates alone reads no marks of its tokenizer's that no text has.
                needed = rows_needed(info) if "num_layers" in vars(config) else info.size
                config = replace(
                    config, vocabulary_size=max(size, needed), architecture=architecture
                )
                given = {"dropout": self.dropout, "attention_dropout": self.attention_dropout}
                config = replace(config, **{k: v for k, v in given.items() if v is not None})
                module: Transformer | CausalTransformer = config.build(tokenizer=tokenizer)
                module.pretrained = self
            return module


def own_config(architecture: Mapping[str, Any], path: str) -> OwnConfig:
    """The settings of textmill's own Transformer that compute what an architecture does.

    What ``config.json`` leaves out is as transformers has it; ``path`` is for messages.
    """
    kind = str(architecture.get("model_type"))
    if kind not in (*SEQ2SEQ, "gpt2", "llama"):
        known = ", ".join(sorted([*SEQ2SEQ, "gpt2", "llama"]))
        raise UserError(
            f"{path} is a {kind:.40}, which textmill's own layers are not: {known} are."
        )
    found = pretrained_config(architecture, path, needed_by="A model of pretrained weights")
    name = getattr(found, "activation_function", None) or getattr(found, "hidden_act", None)
    wrong = [] if name in ACTIVATIONS else [f"the activation {name!r:.40}"]
    for setting, wanted in _wanted(kind, found).items():
        if (value := getattr(found, setting, wanted)) != wanted:
            wrong.append(f"{setting}={value!r:.80}, where {wanted!r} is known")
    if wrong:
        raise UserError(
            f"{path} is a {kind} that textmill's own layers do not have: {', '.join(wrong)}."
        )
    activation = ACTIVATIONS[str(name)]
    if kind in SEQ2SEQ:
        sizes = {ours: getattr(found, theirs) for ours, theirs in SIZES.items()}
        offset = {"position_offset": found.pad_token_id + 1} if kind == "m2m_100" else {}
        own = {**sizes, **SEQ2SEQ[kind], **offset, "banned": tuple(banned_ids(architecture, path))}
        return Transformer.Config(**own, activation=activation)
    causal: dict[str, Any] = {
        "dim": found.hidden_size,
        "num_layers": found.num_hidden_layers,
        "num_heads": found.num_attention_heads,
        "max_length": found.max_position_embeddings,
        "tie": found.tie_word_embeddings,
        "plain_embedding": True,
        "activation": activation,
    }
    if kind == "gpt2":
        return CausalTransformer.Config(
            **causal,
            norm_eps=found.layer_norm_epsilon,
            positions="learned",
            ffn_dim=found.n_inner or 4 * found.n_embd,
            dropout=found.resid_pdrop,
            attention_dropout=found.attn_pdrop,
        )
    return CausalTransformer.Config(
        **causal,
        attention=MultiHead.Config(num_kv_heads=found.num_key_value_heads),
        feed_forward="gated",
        norm="rms_norm",
        norm_eps=found.rms_norm_eps,
        rotary_base=found.rope_parameters["rope_theta"],
        ffn_dim=found.intermediate_size,
        dropout=0.0,
        attention_dropout=found.attention_dropout,
    )


def _wanted(kind: str, found: Any) -> dict[str, Any]:
    if kind in SEQ2SEQ:
        alike = {
            "decoder_attention_heads": found.encoder_attention_heads,
            "decoder_ffn_dim": found.encoder_ffn_dim,
        }
        return {**alike, "share_encoder_decoder_embeddings": True, "tie_word_embeddings": True}
    if kind == "gpt2":
        one = {"scale_attn_weights": True, "scale_attn_by_inverse_layer_idx": False}
        return {**one, "add_cross_attention": False}
    turned = {**found.rope_parameters, "rope_type": "default"}
    return {"head_dim": found.hidden_size // found.num_attention_heads, "rope_parameters": turned}


def _refuse_tokenizer(architecture: Mapping[str, Any], tokenizer: HasVocabInfo, path: str) -> None:
    info, size = tokenizer.vocab_info, architecture.get("vocab_size") or 0
    marks = {"padding": ("pad_token_id", info.pad_idx), "end mark": ("eos_token_id", info.eos_idx)}
    for mark, (name, found) in marks.items():
        wanted = architecture.get(name)
        if isinstance(wanted, int) and wanted < size and wanted != found:
            raise UserError(
                f"The tokenizer's {mark} is {found}, but that of {path} is {wanted}: the weights "
                f"know other tokens. Use its own tokenizer: tokenizer.type=pretrained"
            )


def take_weights(module: Transformer | CausalTransformer) -> str:
    """Takes the weights that a fresh run of a module begins with; returns a line that says so.

    The table of tokens may have other rows than the tokenizer has ids: what no id stands for is
    not taken, and ids without a row get the mean of all, whose score is never the best.
    """
    source = module.pretrained
    assert source is not None
    kind = (module.config.architecture or {})["model_type"]
    import transformers

    causal = isinstance(module, CausalTransformer)
    loader: Any = transformers.AutoModelForSeq2SeqLM
    if causal:
        loader = transformers.AutoModelForCausalLM
    found, missing, note = load_pretrained(loader, source.path, revision=source.revision)
    given, lacks = found.state_dict(), []
    learned = causal or module.config.positions == "learned"
    with torch.no_grad():
        for name, view in named_tensors(module, kind):
            if name.endswith("embed_positions.weight") and not learned:
                continue
            if name in given and name not in missing:
                columns = name == "final_logits_bias"  # else a row, or a number, for each token
                mine, value = (view.T, given[name].T) if columns else (view, given[name])
                both = min(len(mine), len(value))
                mine[:both] = value[:both]
                if both < len(mine):
                    mine[both:] = value.mean(0)
            elif kind == "llama" and name.endswith("_proj.bias"):  # which it does not have
                view.zero_()
            else:
                lacks.append(f"{name} is missing")
    refuse_misfits(lacks, source.path, kind)
    count = sum(p.numel() for p in module.parameters())
    line = f"Pretrained weights of {source.path} in textmill's own layers: {count:,} parameters."
    return line + note
