"""Experiments of language models; set ``train_data.path`` and ``valid_data.path``."""

from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like, register_experiment
from textmill.data.text_lines import TextLines
from textmill.models.causal_transformer import CausalTransformer
from textmill.models.language_model import LstmLanguageModel
from textmill.tasks.language_model import LanguageModeling
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, AdamW, Constant, Cosine, Every, Selection, Trainer

PERPLEXITY = Selection.Config(metric="perplexity")


def lines(doc: str, valid: str, batch_size: int, **ingredients: Any) -> Recipe:
    """A recipe that trains on lines of a text."""
    return Recipe(
        doc=doc,
        train_data=TextLines.Config(path=Path("data/train.txt"), batch_size=batch_size),
        valid_data=like("train_data", path=Path("data") / valid, shuffle=False),
        **ingredients,
    )


@register_experiment("language/lstm")
def language_lstm() -> Recipe:
    """An LSTM over words, its state carried through the text; as large as suits WikiText-2."""
    return lines(
        "Train a stateful LSTM language model of words.",
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


@register_experiment("language/lstm/local")
def language_lstm_local() -> Recipe:
    """The same, tiny, on a few lines: seconds on a laptop."""
    return lines(
        "Train a tiny LSTM language model of words.",
        "valid.txt",
        5,
        tokenizer=FittedWords.Config(marks=True),
        model=LstmLanguageModel.Config(dim=10, hidden_dim=32, num_layers=1, dropout=0.0),
        task=LanguageModeling.Config(block=35),
        optimizer=Adam.Config(lr=5e-3),
        lr_scheduler=Constant.Config(),
        trainer=Trainer.Config(
            max_steps=150, evaluate_every=Every(50, "steps"), selection=PERPLEXITY
        ),
    )


@register_experiment("language/transformer")
def language_transformer() -> Recipe:
    """A decoder-only Transformer over characters, as large as suits Tiny Shakespeare."""
    return lines(
        "Train a decoder-only Transformer on the characters of a text.",
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


@register_experiment("language/transformer/local")
def language_transformer_local() -> Recipe:
    """The same, tiny: seconds on a laptop."""
    return lines(
        "Train a tiny Transformer on the characters of a text.",
        "dev.txt",
        8,
        tokenizer=FittedTokenizer.Config(kind="characters"),
        model=CausalTransformer.Config(dim=32, num_layers=2, ffn_dim=64, dropout=0.0),
        task=LanguageModeling.Config(block=32, until="length"),
        optimizer=AdamW.Config(lr=3e-3),
        lr_scheduler=Constant.Config(),
        trainer=Trainer.Config(
            max_steps=60, evaluate_every=Every(20, "steps"), selection=PERPLEXITY
        ),
    )
