"""Experiments of semantic parsing; set ``train_data.path`` and ``valid_data.path``.

Words of both sides are what white space divides, as they are written, so that an answer is a target
to the letter.
"""

from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like
from textmill.data.text_pairs import TextPairs
from textmill.models.transformer import Transformer
from textmill.recipes.experiments.tiny import register_with_local, tiny
from textmill.tasks.generation import SemanticParsing
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import AdamW, Every, Linear, Selection, Trainer


def local(recipe: Recipe) -> Recipe:
    """The same recipe with a tiny model and a few steps: seconds on a laptop, to see it run."""
    model = Transformer.Config(
        dim=32, num_encoder_layers=1, num_decoder_layers=1, num_heads=2, ffn_dim=64
    )
    return tiny(recipe, model=model)


def parsing(
    doc: str,
    folder: str,
    task: SemanticParsing.Config,
    *,
    min_count: int = 1,
    max_steps: int,
    evaluate_every: int,
    **data: Any,
) -> Recipe:
    """A recipe that trains a Transformer of words on sentences and their forms."""
    return Recipe(
        doc=doc,
        train_data=TextPairs.Config(path=Path("data") / folder / "train.tsv", **data),
        valid_data=like("train_data", path=Path("data") / folder / "dev.tsv", shuffle=False),
        tokenizer=FittedWords.Config(
            columns=("source", "target"), lowercase=False, marks=True, min_count=min_count
        ),
        model=Transformer.Config(
            dim=128, num_encoder_layers=2, num_decoder_layers=2, num_heads=4, ffn_dim=512
        ),
        task=task,
        optimizer=AdamW.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=400),
        trainer=Trainer.Config(
            max_steps=max_steps,
            evaluate_every=Every(evaluate_every, "steps"),
            selection=Selection.Config(metric="exact_match"),
        ),
    )


@register_with_local("parsing/cogs", local)
def parsing_cogs() -> Recipe:
    """Sentences to logical forms (COGS, Kim and Linzen 2020): sentence, form, then anything."""
    return parsing(
        "Train a Transformer that gives sentences their logical form.",
        "cogs",
        SemanticParsing.Config(),
        max_steps=4000,  # twelve epochs: a quarter of an hour on one core
        evaluate_every=1000,
        max_tokens=4096,
    )


@register_with_local("parsing/top", local)
def parsing_top() -> Recipe:
    """Sentences to trees of intents and slots (TOP, Gupta et al. 2018): domain, sentence, tree."""
    return parsing(
        "Train a Transformer that gives sentences their tree of intents and slots.",
        "top",
        SemanticParsing.Config(trees=True, copy_unknown=True),
        min_count=3,  # rarer words train the unknown word's way from the sentence into its tree
        max_steps=3000,  # thirty epochs: seven minutes on one core
        evaluate_every=500,
        max_tokens=2048,
        columns={"source": 1, "target": 2},
    )
