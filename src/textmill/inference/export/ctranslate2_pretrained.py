"""Pretrained models as CTranslate2 runs them: what its own converter makes of transformers'."""

import copy
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch

from textmill.exported.ctranslate2 import names_of
from textmill.inference.export.ctranslate2_spec import save_seq2seq
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.lora import merged
from textmill.text.tokenizers.tokenizer import VocabInfo


def refusals(module: PretrainedLanguageModel | PretrainedSeq2Seq) -> list[str]:
    """What of a module CTranslate2 cannot compute, a line each; empty where it can all."""
    try:
        _spec(module)
    except Exception as error:  # what its converter does not know ends in any way
        kind, why = module.model.config.model_type, f"{type(error).__name__}: {error}"
        return [f"the model is a {kind}, which CTranslate2's converter does not take ({why:.200})"]
    return []


def write(
    module: PretrainedLanguageModel,
    folder: Path,
    *,
    vocab: VocabInfo,
    begin_idx: int,
    quantization: str | None = None,
) -> None:
    """Writes ``model.bin``, ``config.json`` and the vocabulary that CTranslate2 loads.

    Args:
        module: The model, in which :func:`refusals` finds nothing.
        folder: Where to.
        vocab: Facts of the tokenizer's vocabulary.
        begin_idx: The id that texts begin with.
        quantization: Type of the matrices as CTranslate2 calls it, as ``int8``; None: as they are.
    """
    loader, spec = _spec(module)
    names = names_of(vocab, rows=len(module.output_weight))
    marks = SimpleNamespace(bos_token=names[begin_idx], eos_token=names[vocab.eos_idx])
    marks.unk_token, marks.pad_token = "<unk>", None
    loader.set_config(spec.config, module.model, marks)
    spec.register_vocabulary(names)
    spec.validate()
    spec.optimize(quantization)
    spec.save(str(folder))


def write_seq2seq(
    module: PretrainedSeq2Seq,
    folder: Path,
    *,
    vocab: VocabInfo,
    start_idx: int,
    quantization: str | None = None,
) -> None:
    """Writes an encoder-decoder, whose targets begin with ``start_idx``: ``save_seq2seq``."""
    _, spec = _spec(module)
    save_seq2seq(
        spec,
        module,
        folder,
        vocab=vocab,
        start_idx=start_idx,
        eps=getattr(module.model.config, "layer_norm_epsilon", 1e-5),
        quantization=quantization,
    )


@torch.no_grad()
def _spec(module: PretrainedLanguageModel | PretrainedSeq2Seq) -> tuple[Any, Any]:
    """What reads the architecture, and what it makes of the model."""
    from ctranslate2.converters.transformers import _MODEL_LOADERS

    whole: Any = merged(module)
    kept = {id(tensor): tensor for tensor in [*whole.parameters(), *whole.buffers()]}
    model = copy.deepcopy(whole.model, kept)  # the converter takes parts out of it
    for name, value in _former(model).items():
        setattr(model.config, name, value)
    model.embed_out = model.get_output_embeddings()  # as GPT-NeoX's was called
    kind = type(model.config).__name__
    if isinstance(module, PretrainedSeq2Seq):
        model.config.tie_word_embeddings = module.scale != 1  # by which it knows what a T5 scales
        for name, value in (("normalize_before", False), ("normalize_embedding", True)):
            setattr(model.config, name, getattr(model.config, name, value))
        if kind == "MarianConfig":  # whose own loader takes the padding's row out
            model.config.normalize_embedding, kind = False, "BartConfig"
    loader = _MODEL_LOADERS[kind]
    return loader, loader.get_model_spec(model)


def _former(model: Any) -> dict[str, Any]:
    """Settings of rotary positions by the names that they had when the converter was written."""
    found = getattr(model.config, "rope_parameters", None) or {}
    told = {"rope_theta": found.get("rope_theta"), "rotary_pct": found.get("partial_rotary_factor")}
    scaled = found.get("rope_type", "default") != "default"
    told["rope_scaling"] = found if scaled else None
    return {name: value for name, value in told.items() if value is not None}
