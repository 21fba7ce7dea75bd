"""Text from text: translations, summaries, logical forms; set the paths of the data.

Words of ``parsing`` are what white space divides, as they are written, so that an answer is a
target to the letter.
"""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like
from textmill.data.text_pairs import TextPairs
from textmill.models.decoders.mask_predict import MaskPredict
from textmill.models.decoding import Decoding
from textmill.models.decoding.mask_predict import MaskPredictDecoding
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.layers.word_embeddings import CharacterCnn
from textmill.models.readers.sentences import SentenceScorer
from textmill.models.transformer import Transformer
from textmill.recipes.corpus.data import CorpusPairs
from textmill.recipes.experiments.variants import register_with_local, tiny
from textmill.tasks.generation import (
    ExtractiveSummarization,
    SemanticParsing,
    Summarization,
    Translation,
)
from textmill.tasks.mask_predict import MaskPredictParsing
from textmill.text.features.spelling import FittedPieces
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, AdamW, Every, Linear, Selection, Trainer


def translation_local(recipe: Recipe) -> Recipe:
    """The recipe with a tiny model over characters."""
    made = dict(recipe.ingredients)
    made.pop("test_data", None)
    # Untrained, it would fill every answer up to a multiple of its source.
    short = Decoding(max_length_a=0.0, max_length_b=10)
    return tiny(
        Recipe(**made),
        tokenizer=replace(made["tokenizer"], kind="characters", vocab_size=5000),
        model=Transformer.Config(
            dim=16, num_heads=2, num_encoder_layers=1, num_decoder_layers=1, ffn_dim=32
        ),
        task=replace(made.get("task", Translation.Config()), decoding=short),
    )


@register_with_local("translation/tatoeba", translation_local)
def translation_tatoeba() -> Recipe:
    """English to French on Tatoeba; set ``train_data.path`` and ``valid_data.path``."""
    return Recipe(
        train_data=TextPairs.Config(path=Path("data/tatoeba/train.tsv"), max_tokens=2048),
        valid_data=like("train_data", path=Path("data/tatoeba/dev.tsv"), shuffle=False),
        tokenizer=FittedTokenizer.Config(
            vocab_size=5000, source_langs=("eng",), target_langs=("fra",)
        ),
        model=Transformer.Config(dim=128, num_encoder_layers=4, num_decoder_layers=4, dropout=0.05),
        task=Translation.Config(label_smoothing=0.1),
        optimizer=AdamW.Config(lr=3e-3),
        lr_scheduler=Linear.Config(warmup_steps=400),
        trainer=Trainer.Config(
            max_steps=7000,  # about a quarter of an hour on two cores
            evaluate_every=Every(1400, "steps"),
            ema=0.999,  # of the weights, so that an evaluation in between is near its best
            selection=Selection.Config(metric="bleu"),
        ),
    )


@register_with_local("translation/demo", translation_local)
def translation_demo() -> Recipe:
    """English to French on the corpus that textmill generates: minutes on a laptop, no download."""
    return Recipe(
        train_data=CorpusPairs.Config(part="train", max_tokens=2048),
        valid_data=like("train_data", part="valid", shuffle=False),
        test_data=like("train_data", part="test", shuffle=False),
        tokenizer=FittedTokenizer.Config(
            vocab_size=1000, source_langs=("eng",), target_langs=("fra",)
        ),
        model=Transformer.Config(dim=128, num_encoder_layers=2, num_decoder_layers=2, dropout=0.05),
        optimizer=AdamW.Config(lr=3e-3),
        lr_scheduler=Linear.Config(warmup_steps=200),
        trainer=Trainer.Config(
            max_steps=1800,
            evaluate_every=Every(600, "steps"),
            selection=Selection.Config(metric="bleu"),
        ),
    )


LONGEST = 1024
"""Pieces of a text at most; of SciTLDR's abstracts the longest have 637. Rows of longer ones, as
of pieces of two characters, are left out and counted."""


def summarization_local(recipe: Recipe) -> Recipe:
    """The recipe with a tiny model and few pieces."""
    made = recipe.ingredients
    sizes = {"dim": 32, "num_heads": 2, "ffn_dim": 64}
    return tiny(
        recipe,
        tokenizer=replace(made["tokenizer"], vocab_size=300),
        model=replace(made["model"], num_encoder_layers=1, num_decoder_layers=1, **sizes),
    )


@register_with_local("summarization/scitldr", summarization_local)
def summarization_scitldr() -> Recipe:
    """Abstracts to one sentence (SciTLDR, Cachola et al. 2020), each with several references."""
    return Recipe(
        train_data=TextPairs.Config(
            path=Path("data/scitldr/train.jsonl"),
            columns={"source": "source", "target": "target.0", "references": "target"},
            lists=("references",),
            max_tokens=8192,
        ),
        valid_data=like("train_data", path=Path("data/scitldr/dev.jsonl"), shuffle=False),
        tokenizer=FittedTokenizer.Config(vocab_size=8000, columns=("source", "target")),
        model=Transformer.Config(
            dim=128,
            num_encoder_layers=2,
            num_decoder_layers=2,
            num_heads=4,
            ffn_dim=512,
            dropout=0.2,
            max_length=LONGEST,
        ),
        task=Summarization.Config(max_source_length=LONGEST, over_length="skip"),
        optimizer=AdamW.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=200),
        trainer=Trainer.Config(
            max_steps=1200,
            evaluate_every=Every(400, "steps"),
            selection=Selection.Config(metric="rouge1"),
        ),
    )


def extractive_local(recipe: Recipe) -> Recipe:
    """The recipe with a tiny model."""
    cnn = CharacterCnn.Config(dim=8, filters=4, widths=(1, 2))
    model = SentenceScorer.Config(encoder=LstmEncoder.Config(hidden_dim=8), sentence_cnn=cnn)
    made = recipe.ingredients
    pieces, trainer = replace(made["pieces"], min_count=1), replace(made["trainer"], ema=None)
    return tiny(recipe, pieces=pieces, model=model, trainer=trainer)


@register_with_local("summarization/extractive-lstm", extractive_local)
def summarization_extractive_lstm() -> Recipe:
    """The sentence that sums up a text, by what is learnt from the training rows alone.

    A convolution over the words of each sentence, and an LSTM over sentences (Cheng and Lapata
    2016), which knows their places.
    """
    made = summarization_scitldr().ingredients
    return Recipe(
        train_data=replace(made["train_data"], max_tokens=None, batch_size=16),
        valid_data=made["valid_data"],
        pieces=FittedPieces.Config(column="source"),
        model=SentenceScorer.Config(encoder=LstmEncoder.Config(hidden_dim=64), dropout=0.5),
        task=ExtractiveSummarization.Config(),
        optimizer=Adam.Config(lr=1e-3),
        lr_scheduler=Linear.Config(warmup_steps=50),
        trainer=Trainer.Config(
            max_epochs=6, ema=0.995, selection=Selection.Config(metric="rouge1")
        ),
    )


parsing_local = partial(
    tiny,
    model=Transformer.Config(
        dim=32, num_encoder_layers=1, num_decoder_layers=1, num_heads=2, ffn_dim=64
    ),
)


def parsing(
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


@register_with_local("parsing/cogs", parsing_local)
def parsing_cogs() -> Recipe:
    """Sentences to logical forms (COGS, Kim and Linzen 2020): sentence, form, then anything."""
    return parsing(
        "cogs",
        SemanticParsing.Config(),
        max_steps=4000,  # twelve epochs: a quarter of an hour on one core
        evaluate_every=1000,
        max_tokens=4096,
    )


@register_with_local("parsing/top", parsing_local)
def parsing_top() -> Recipe:
    """Sentences to trees of intents and slots (TOP, Gupta et al. 2018): domain, sentence, tree."""
    return parsing(
        "top",
        SemanticParsing.Config(trees=True, copy_unknown=True),
        min_count=3,  # rarer words train the unknown word's way from the sentence into its tree
        max_steps=3000,  # thirty epochs: seven minutes on one core
        evaluate_every=500,
        max_tokens=2048,
        columns={"source": 1, "target": 2},
    )


mask_predict_local = partial(
    tiny,
    model=MaskPredict.Config(
        dim=32, num_encoder_layers=1, num_decoder_layers=1, num_heads=2, ffn_dim=64
    ),
)


@register_with_local("parsing/mask-predict", mask_predict_local)
def parsing_mask_predict() -> Recipe:
    """Sentences to trees as ``parsing/top``, but all tokens of a tree at once, in a few passes."""
    return Recipe(
        **{
            **parsing_top().ingredients,
            "model": MaskPredict.Config(
                dim=128,
                num_encoder_layers=2,
                num_decoder_layers=1,
                num_heads=2,
                ffn_dim=256,
                longest_move=32,  # two for each of 16 intents and slots
            ),
            "task": MaskPredictParsing.Config(
                trees=True,
                copy_unknown=True,
                all_masked=0.7,
                decoding=MaskPredictDecoding(iterations=1, max_length_a=8.0, max_length_b=40),
            ),
        }
    )
