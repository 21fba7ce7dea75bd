"""Our own Transformers with the weights of published ones: Marian, NLLB, Pegasus, GPT-2, Llama.

Source: Junczys-Dowmunt et al. 2018 (Marian), Fan et al. 2020 (M2M-100), NLLB Team 2022, Zhang et
al. 2019 (Pegasus), Radford et al. 2019 (GPT-2), Touvron et al. 2023 (Llama).
"""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Final

import torch
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.models import registries
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.huggingface.tensor_names import ACTIVATIONS, named_tensors
from textmill.models.layers.attention import MultiHead
from textmill.models.pretrained import (
    PretrainedSource,
    architecture_of,
    banned_ids,
    building,
    load_pretrained,
    plain_architecture,
    pretrained_config,
    refuse_misfits,
    vocabulary_of,
)
from textmill.models.transformer import Transformer
from textmill.models.vocabulary import HasVocabInfo, rows_needed

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

    class Config(BaseConfig):
        """Where the model comes from."""

        path: str = ""
        """A folder with config.json and model.safetensors, or a name on the Hugging Face hub."""
        revision: str | None = None
        """A branch, tag or commit of the hub; null is the newest."""
        dropout: float | None = None
        """Probability of dropping a feature, in place of the model's own."""
        attention_dropout: float | None = None
        """Probability of dropping an attention weight, in place of the model's own; over 0 is
        slower on CPU."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, tokenizer: HasVocabInfo
        ) -> Transformer | CausalTransformer:
            """Makes the model; its weights are read when a run begins.

            Raises:
                UserError: There is none, textmill has no layers for it, or the tokenizer is
                    another's.
            """
            told = plain_architecture(
                architecture_of(self.path, revision=self.revision, setting="model.path")
            )
            with building(told, self):
                config: Any = own_config(told, self.path)
                _refuse_tokenizer(told, tokenizer, self.path)
                info, size = tokenizer.vocab_info, vocabulary_of(told, self.path)
                # What generates alone reads no marks of its tokenizer's that no text has.
                needed = rows_needed(info) if "num_layers" in vars(config) else info.size
                config = replace(config, vocabulary_size=max(size, needed))
                given = {"dropout": self.dropout, "attention_dropout": self.attention_dropout}
                config = replace(config, **{k: v for k, v in given.items() if v is not None})
                module: Transformer | CausalTransformer = config.build(tokenizer=tokenizer)
                module.pretrained = PretrainedSource(self.path, self.revision, told["model_type"])
            return module


def own_config(told: Mapping[str, Any], path: str) -> OwnConfig:
    """The settings of textmill's own Transformer that compute what an architecture does.

    Args:
        told: What ``config.json`` says; what it leaves out is as transformers has it.
        path: Where it is from, for messages.

    Raises:
        UserError: There are none: names each setting that no layer of textmill's has.
        MissingExtraError: The package transformers is not installed.
    """
    kind = str(told.get("model_type"))
    if kind not in (*SEQ2SEQ, "gpt2", "llama"):
        known = ", ".join(sorted([*SEQ2SEQ, "gpt2", "llama"]))
        raise UserError(
            f"{path} is a {kind:.40}, which textmill's own layers are not: {known} are."
        )
    found = pretrained_config(told, path, needed_by="A model of pretrained weights")
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
        own = {**sizes, **SEQ2SEQ[kind], **offset, "banned": tuple(banned_ids(told, path))}
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
    """The values of settings that textmill's layers have alone."""
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


def _refuse_tokenizer(told: Mapping[str, Any], tokenizer: HasVocabInfo, path: str) -> None:
    """Refuses a tokenizer whose marks are not those that the weights know."""
    info, size = tokenizer.vocab_info, told.get("vocab_size") or 0
    marks = {"padding": ("pad_token_id", info.pad_idx), "end mark": ("eos_token_id", info.eos_idx)}
    for mark, (name, found) in marks.items():
        wanted = told.get(name)
        if isinstance(wanted, int) and wanted < size and wanted != found:
            raise UserError(
                f"The tokenizer's {mark} is {found}, but that of {path} is {wanted}: the weights "
                f"know other tokens. Use its own tokenizer: tokenizer.type=pretrained"
            )


def take_weights(module: Transformer | CausalTransformer) -> str:
    """Takes the weights that a fresh run of a module begins with; returns a line that says so.

    The table of tokens may have other rows than the tokenizer has ids: what no id stands for is
    not taken, and ids without a row get the mean of all, whose score is never the best.

    Raises:
        UserError: They are not there, or not those of the architecture.
    """
    source = module.pretrained
    assert source is not None
    import transformers

    causal = isinstance(module, CausalTransformer)
    kind: Any = transformers.AutoModelForCausalLM if causal else transformers.AutoModelForSeq2SeqLM
    found, missing, _ = load_pretrained(kind, source.path, revision=source.revision)
    given, lacks = found.state_dict(), []
    learned = causal or module.config.positions == "learned"
    with torch.no_grad():
        for name, view in named_tensors(module, source.kind):
            if name.endswith("embed_positions.weight") and not learned:
                continue
            if name in given and name not in missing:
                columns = name == "final_logits_bias"  # else a row, or a number, for each token
                mine, value = (view.T, given[name].T) if columns else (view, given[name])
                both = min(len(mine), len(value))
                mine[:both] = value[:both]
                if both < len(mine):
                    mine[both:] = value.mean(0)
            elif source.kind == "llama" and name.endswith("_proj.bias"):  # which it does not have
                view.zero_()
            else:
                lacks.append(f"{name} is missing")
    refuse_misfits(lacks, source.path, source.kind)
    count = sum(p.numel() for p in module.parameters())
    return f"Pretrained weights of {source.path} in textmill's own layers: {count:,} parameters."
