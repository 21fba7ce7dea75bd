"""What CTranslate2 is told of every encoder-decoder, beside its layers."""

from pathlib import Path
from typing import Any, Final

import torch

from textmill.exported.ctranslate2 import names_of
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.transformer import Transformer
from textmill.text.tokenizers.tokenizer import VocabInfo

NEVER: Final = -1e9
"""A score of a token that is never answered, in graphs, and what is added to it."""


def save_seq2seq(
    spec: Any,
    module: Transformer | PretrainedSeq2Seq,
    folder: Path,
    *,
    vocab: VocabInfo,
    start_idx: int,
    eps: float,
    quantization: str | None,
) -> None:
    """Writes ``model.bin``, ``config.json`` and the vocabulary of a model whose layers are filled.

    The names of the vocabulary are the ids themselves, but for the marks of targets: the text
    processor that is written beside turns text to ids. A source's end mark is no mark to
    CTranslate2, which would answer nothing to an empty source.

    Args:
        spec: CTranslate2's own of the model, without vocabulary and bias of scores.
        module: The model.
        folder: Where to.
        vocab: Facts of the tokenizer's vocabulary.
        start_idx: The id that every target begins with.
        eps: Of the normalizations.
        quantization: Type of the matrices as CTranslate2 calls it, as ``int8``; None: as they are.
    """
    bias = torch.zeros(len(module.output_weight))
    if isinstance(module.output_bias, torch.Tensor):
        bias += module.output_bias.detach().float().cpu()
    bias[module.banned.cpu()] = NEVER
    if bias.any():
        spec.decoder.projection.bias = bias.numpy()
    names = names_of(vocab, rows=len(bias))
    spec.register_source_vocabulary([str(i) for i in range(len(names))])
    spec.register_target_vocabulary(names)
    spec.config.add_source_eos = False  # the text processor has put it there
    spec.config.bos_token, spec.config.eos_token = names[vocab.bos_idx], names[vocab.eos_idx]
    spec.config.unk_token, spec.config.decoder_start_token = names[vocab.unk_idx], names[start_idx]
    spec.config.layer_norm_epsilon = eps
    spec.validate()
    spec.optimize(quantization)  # equal matrices are written once
    spec.save(str(folder))
