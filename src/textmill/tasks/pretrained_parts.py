"""What parts of a module begin with that others trained: models' weights, vectors of words."""

import torch
from torch import nn

from textmill.errors import UserError
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.classifier import TextVector
from textmill.models.decoders.pretrained import PretrainedLanguageModel
from textmill.models.decoders.pretrained_seq2seq import PretrainedSeq2Seq
from textmill.models.decoders.pretrained_transformer import take_weights
from textmill.models.encoders.pretrained import PretrainedEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.lora import check_adapters_learn
from textmill.models.transformer import Transformer
from textmill.text.features.spelling import WordPieces
from textmill.text.features.word_vectors import read_word_vectors
from textmill.text.processors.text_processor import TextProcessor
from textmill.text.tokenizers.huggingface import HuggingFaceTokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer


def check_own_ids(module: nn.Module, text: TextProcessor) -> None:
    """Refuses a pretrained encoder that would be given the ids of another tokenizer."""
    tokenizer = text.ingredients.get("pieces", text.ingredients.get("tokenizer"))
    own = isinstance(tokenizer, HuggingFaceTokenizer | WordPieces)
    if own or not any(isinstance(layer, PretrainedEncoder) for layer in module.modules()):
        return
    if type(tokenizer).__module__.startswith("textmill."):
        raise UserError(
            "model.encoder reads the ids of its own tokenizer, but the recipe's is a "
            f"{type(tokenizer).__name__}. Set tokenizer.type=pretrained, or start from an "
            "experiment for such encoders, as classification/pretrained."
        )


def begin_pretrained(module: nn.Module, text: TextProcessor) -> list[str]:
    """Reads the weights of pretrained models, and the word vectors that embeddings name.

    Returns a line for each, with how many parameters, or words, it gives.
    """
    check_adapters_learn(module)
    lines, tokenizer = list[str](), text.ingredients.get("tokenizer")
    pooled = {m.encoder: m.pooling for m in module.modules() if isinstance(m, TextVector)}
    for layer in module.modules():
        if isinstance(layer, PretrainedEncoder):
            lines.append(layer.begin(pooled.get(layer)))
        elif isinstance(layer, PretrainedLanguageModel | PretrainedSeq2Seq):
            lines.append(layer.begin())
        elif isinstance(layer, Transformer | CausalTransformer) and layer.pretrained:
            lines.append(take_weights(layer))
        if not (isinstance(layer, WordEmbedding) and (path := layer.config.vectors)):
            continue
        if not isinstance(tokenizer, WordTokenizer):
            raise UserError(
                f"The vectors of {path} are of words, but the tokenizer has other tokens. Use "
                "tokenizer.type=fitted_words, or leave out embedding.vectors."
            )
        words, lowercase = tokenizer.numbers, tokenizer.config.lowercase
        found = read_word_vectors(path, words, layer.config.dim, lowercase=lowercase)
        layer.begin(torch.from_numpy(found.ids), torch.from_numpy(found.vectors))
        lines.append(f"Word vectors of {path}: {found.coverage}.")
    return lines
