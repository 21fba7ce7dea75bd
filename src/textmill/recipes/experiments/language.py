"""Language models and encoders of bare text; set ``train_data.path`` and ``valid_data.path``.

The models of ``bert`` are those of ``classification/transformer``, whole and tiny, which begins
with what was learned here by ``trainer.initialize``.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like
from textmill.data.masking import Masking
from textmill.data.text_lines import TextLines
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.language_model import LstmLanguageModel
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.masked_language_model import MaskedLanguageModel
from textmill.recipes.experiments.variants import register_with_local
from textmill.tasks.language_model import LanguageModeling
from textmill.tasks.masked_language_model import MaskedLanguageModeling
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, AdamW, Constant, Cosine, Every, Linear, Selection, Trainer

PERPLEXITY = Selection.Config(metric="perplexity")


def lines(valid: str, batch_size: int, **ingredients: Any) -> Recipe:
    """A recipe that trains on lines of a text."""
    return Recipe(
        train_data=TextLines.Config(path=Path("data/train.txt"), batch_size=batch_size),
        valid_data=like("train_data", path=Path("data") / valid, shuffle=False),
        **ingredients,
    )


def local(recipe: Recipe, *, batch_size: int, lr: float, steps: int, **changed: Any) -> Recipe:
    """The recipe with a tiny model and a few steps."""
    made = recipe.ingredients
    made["train_data"] = replace(made["train_data"], batch_size=batch_size)
    made["optimizer"] = replace(made["optimizer"], lr=lr)
    selection = made["trainer"].selection
    made["trainer"] = Trainer.Config(
        max_steps=steps, evaluate_every=Every(steps // 3, "steps"), selection=selection
    )
    return Recipe(**{**made, **changed})


@register_with_local(
    "language/lstm",
    partial(
        local,
        batch_size=5,
        lr=5e-3,
        steps=150,
        tokenizer=FittedWords.Config(marks=True),
        model=LstmLanguageModel.Config(dim=10, hidden_dim=32, num_layers=1, dropout=0.0),
        lr_scheduler=Constant.Config(),
    ),
)
def language_lstm() -> Recipe:
    """A stateful LSTM language model of words; as large as suits WikiText-2."""
    return lines(
        "valid.txt",
        20,
        tokenizer=FittedWords.Config(marks=True, lowercase=False),
        model=LstmLanguageModel.Config(),
        task=LanguageModeling.Config(block=35),
        optimizer=Adam.Config(lr=4e-3),
        lr_scheduler=Cosine.Config(warmup_steps=100),
        trainer=Trainer.Config(
            max_steps=4500,  # 1.5 times through WikiText-2: 20 minutes on two cores
            clip_norm=0.25,
            evaluate_every=Every(1500, "steps"),
            selection=PERPLEXITY,
        ),
    )


@register_with_local(
    "language/transformer",
    partial(
        local,
        batch_size=8,
        lr=3e-3,
        steps=60,
        model=CausalTransformer.Config(dim=32, num_layers=2, ffn_dim=64, dropout=0.0),
        task=LanguageModeling.Config(block=32, until="length"),
        lr_scheduler=Constant.Config(),
    ),
)
def language_transformer() -> Recipe:
    """A decoder-only Transformer over characters, as large as suits Tiny Shakespeare."""
    return lines(
        "dev.txt",
        32,
        tokenizer=FittedTokenizer.Config(kind="characters"),
        model=CausalTransformer.Config(),
        task=LanguageModeling.Config(block=128, stride=64, until="length"),
        optimizer=AdamW.Config(lr=3e-3),
        lr_scheduler=Cosine.Config(warmup_steps=100),
        trainer=Trainer.Config(
            max_steps=3000,  # a quarter of an hour on two cores
            evaluate_every=Every(500, "steps"),
            selection=PERPLEXITY,
        ),
    )


ENCODER = SelfAttentionEncoder.Config(activation="gelu", positions="rotary")
"""Rotary positions: with sinusoids the loss stays that of single tokens for hundreds of steps."""
TINY_ENCODER = SelfAttentionEncoder.Config(
    num_layers=1, num_heads=2, ffn_dim=32, positions="rotary"
)


@register_with_local(
    "bert/pretraining",
    partial(
        local,
        batch_size=32,
        lr=5e-3,
        steps=60,
        tokenizer=FittedWords.Config(),
        model=MaskedLanguageModel.Config(
            embedding=WordEmbedding.Config(dim=16), encoder=TINY_ENCODER
        ),
        task=MaskedLanguageModeling.Config(block=32),
        lr_scheduler=Linear.Config(warmup_steps=5),
    ),
)
def bert_pretraining() -> Recipe:
    """A Transformer encoder that finds masked pieces of words (Devlin et al. 2019)."""
    return lines(
        "valid.txt",
        32,
        tokenizer=FittedTokenizer.Config(
            kind="bpe", vocab_size=8000, lowercase=True, columns=("text",)
        ),
        model=MaskedLanguageModel.Config(encoder=ENCODER),
        task=MaskedLanguageModeling.Config(),
        optimizer=AdamW.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=200),
        trainer=Trainer.Config(
            max_steps=4000, evaluate_every=Every(500, "steps"), selection=PERPLEXITY
        ),
    )


@register_with_local(
    "bert/electra",
    partial(
        local,
        batch_size=32,
        lr=5e-3,
        steps=60,
        tokenizer=FittedWords.Config(),
        model=MaskedLanguageModel.Config(
            embedding=WordEmbedding.Config(dim=16),
            encoder=TINY_ENCODER,
            generator=replace(TINY_ENCODER, dim=8, ffn_dim=16),
        ),
        task=MaskedLanguageModeling.Config(block=32, masking=Masking(masked=1.0, random=0.0)),
        lr_scheduler=Linear.Config(warmup_steps=5),
    ),
)
def bert_electra() -> Recipe:
    """An encoder that finds the tokens that a smaller one has replaced (Clark et al. 2020)."""
    made = bert_pretraining().ingredients
    made["model"] = replace(made["model"], generator=replace(ENCODER, dim=64, ffn_dim=128))
    made["task"] = replace(made["task"], masking=Masking(masked=1.0, random=0.0))
    made["trainer"] = replace(made["trainer"], selection=Selection.Config(metric="loss"))
    return Recipe(**made)
