"""Language models that were trained before, on much text, by others: decoders of transformers."""

import dataclasses
import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn
from typing_extensions import override

from textmill.errors import UserError
from textmill.models import registries
from textmill.models.decoder_state import DecoderMemory
from textmill.models.language_model import LanguageModel
from textmill.models.lora import add_adapters
from textmill.models.pretrained import (
    PretrainedConfig,
    building,
    copy_weights,
    pretrained_config,
    vocabulary_of,
)
from textmill.models.vocabulary import HasVocabInfo, rows_needed

_PROBE, _LOUD = 3, 1024
"""Tokens of which the scores of a new model are looked at, and what these are multiplied by: small
scores would not show what bends large ones."""
_ALIKE = 1e-3
"""Share of the largest score by which those of one text may differ, computed in two ways."""


class PretrainedState:
    """Keys and values of the tokens read, in a cache of transformers, for a search."""

    def __init__(self, cache: Any) -> None:
        self.cache = cache

    def repeat(self, times: int) -> None:
        self.cache.batch_repeat_interleave(times)

    def select(self, indices: Tensor, *, groups: Tensor | None = None) -> None:
        del groups  # nothing is shared in a group
        self.cache.reorder_cache(indices)


@registries.models.register("pretrained_language_model")
class PretrainedLanguageModel(LanguageModel):
    """A decoder of Hugging Face's transformers with its weights: GPT-2, Llama, Qwen, Mistral, ...

    It reads texts with its own tokenizer (``tokenizer.type=pretrained``). A fresh run begins with
    the weights of ``path``; the run keeps the architecture and its own weights. Weights are
    safetensors, and no code is run that transformers does not have. Each block stands alone, and
    a token attends to all of its block before it, as in a
    :class:`~textmill.models.causal_transformer.CausalTransformer`.

    Source: Radford et al. 2019, "Language Models are Unsupervised Multitask Learners".
    """

    carries_state = False

    class Config(PretrainedConfig):
        """Where the model comes from."""

    def __init__(self, config: Config, *, tokenizer: HasVocabInfo) -> None:
        nn.Module.__init__(self)
        vocab = tokenizer.vocab_info
        architecture = config.read_architecture()
        architecture["vocab_size"] = max(
            rows_needed(vocab), vocabulary_of(architecture, config.path)
        )
        if architecture.get("pad_token_id") in (vocab.eos_idx, vocab.bos_idx):
            architecture["pad_token_id"] = None  # else these tokens' vectors would learn nothing
        made = _decoder(architecture, config.path)
        config.set_dropout(architecture, made)
        self.config = dataclasses.replace(config, architecture=architecture)
        with building(architecture, config):
            import transformers

            kind = transformers.AutoModelForCausalLM
            self.model: Any = kind.from_config(made, trust_remote_code=False).float()
        self.scale, self.cap = _bends(made)
        self.affine = self.scale == 1.0 and self.cap is None
        self._check(config.path)
        if config.lora is not None:
            add_adapters(self.model, config.lora)

    @property
    @override
    def output_weight(self) -> Tensor:  # type: ignore[override]  # it has a name of its own there
        weight: Tensor = self.model.get_output_embeddings().weight
        return weight

    @property
    @override
    def output_bias(self) -> Tensor | None:  # type: ignore[override]
        return getattr(self.model.get_output_embeddings(), "bias", None)

    @property
    @override
    def max_length(self) -> int:
        config = self.model.config
        most = getattr(config, "max_position_embeddings", getattr(config, "max_seq_len", None))
        return 1_000_000 if most is None else int(most)  # ALiBi has no positions

    @override
    def hidden(self, ids: Tensor, state: Tensor | None = None) -> tuple[Tensor, None]:
        if state is not None:
            raise UserError("A PretrainedLanguageModel carries no state from block to block.")
        if ids.shape[1] > self.max_length:
            raise UserError(
                f"A text of {ids.shape[1]} tokens is longer than the model's max_length of "
                f"{self.max_length}."
            )
        out: Tensor = self.model.base_model(input_ids=ids, use_cache=False).last_hidden_state
        return out, None

    @override
    def start(self, memory: DecoderMemory) -> PretrainedState:
        from transformers import DynamicCache

        return PretrainedState(DynamicCache(config=self.model.config))

    @override
    def project(self, hidden: Tensor) -> Tensor:
        logits = super().project(hidden)
        if self.scale != 1.0:
            logits = logits * self.scale
        return logits if self.cap is None else torch.tanh(logits / self.cap) * self.cap

    @override
    def step(self, tokens: Tensor, state: object) -> Tensor:
        return self.read(tokens[:, None], state)[:, 0]

    def read(self, tokens: Tensor, state: object) -> Tensor:
        """Reads tokens of each row at once. *Shape:* :math:`(B,T)` to logits :math:`(B,T,V)`."""
        assert isinstance(state, PretrainedState)
        given = {"input_ids": tokens, "past_key_values": state.cache, "use_cache": True}
        return self.project(self.model.base_model(**given).last_hidden_state)

    def begin(self) -> str:
        """Takes the weights of ``path``; returns a line that says so."""
        return copy_weights(self.model, self.config.path, revision=self.config.revision)

    @torch.no_grad()
    def _check(self, path: str) -> None:
        if self.output_weight.is_meta:  # only its shapes are asked for
            return
        ids = torch.arange(_PROBE)[None]
        self.eval()
        self.output_weight.mul_(_LOUD)
        try:
            wanted, whole = self.model(input_ids=ids, use_cache=False).logits, self(ids)
            state = self.start(self.encode(ids, None))
            steps = [self.step(ids[:, place], state) for place in range(_PROBE)]
        except Exception as error:  # what is of another kind ends in any way
            raise _refusal(self.model.config, path) from error
        self.output_weight.div_(_LOUD)
        self.train()
        parts = (whole, torch.stack(steps, dim=1))
        apart = max(float((found - wanted).abs().max()) for found in parts)
        if not apart <= _ALIKE * float(wanted.abs().max()):
            raise _refusal(self.model.config, path)


def _decoder(architecture: Mapping[str, Any], path: str) -> Any:
    made = pretrained_config(architecture, path, needed_by="model.type=pretrained_language_model")
    import transformers

    both_sides = type(made) in transformers.MODEL_FOR_MASKED_LM_MAPPING
    known = type(made) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    if not known or both_sides or made.is_encoder_decoder or made.get_text_config() is not made:
        raise _refusal(made, path)
    base: Any = transformers.MODEL_MAPPING.get(type(made), None)
    if base is None or "past_key_values" not in inspect.signature(base.forward).parameters:
        raise _refusal(made, path)
    return made


def _bends(made: Any) -> tuple[float, float | None]:
    """What an architecture multiplies scores by (Cohere, Granite), and their limit (Gemma 2)."""
    given = getattr(made, "logit_scale", None), getattr(made, "logits_scaling", None)
    times, over = (float(each) if isinstance(each, int | float) else 1.0 for each in given)
    return times / over, getattr(made, "final_logit_softcapping", None)


def _refusal(made: Any, path: str) -> UserError:
    return UserError(
        f"{path or 'The run'} is a {made.model_type!r:.40}, which is not a decoder that textmill "
        "can continue texts with: it must keep keys and values, and score tokens in a way that "
        "textmill knows. GPT-2, OPT, Llama, Mistral, Qwen, Gemma and GPT-NeoX do. For an encoder "
        "such as BERT take classification/pretrained, for an encoder-decoder such as T5 "
        "translation/pretrained."
    )
