"""Experiments of summarization; set ``train_data.path`` and ``valid_data.path``."""

from dataclasses import replace
from pathlib import Path

from textmill.config.recipe import Recipe, like
from textmill.data.text_pairs import TextPairs
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.layers.word_embeddings import CharacterCnn
from textmill.models.readers.sentences import SentenceScorer
from textmill.models.transformer import Transformer
from textmill.recipes.experiments.tiny import register_with_local, tiny
from textmill.tasks.generation import ExtractiveSummarization, Summarization
from textmill.text.features.spelling import FittedPieces
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.training import Adam, AdamW, Every, Linear, Selection, Trainer

LONGEST = 1024
"""Pieces of a text at most; of SciTLDR's abstracts the longest have 637. Rows of longer ones, as
of pieces of two characters, are left out and counted."""


def local(recipe: Recipe) -> Recipe:
    """The recipe with a tiny model and few pieces: whether all fits together, in seconds."""
    made = recipe.ingredients
    sizes = {"dim": 32, "num_heads": 2, "ffn_dim": 64}
    return tiny(
        recipe,
        tokenizer=replace(made["tokenizer"], vocab_size=300),
        model=replace(made["model"], num_encoder_layers=1, num_decoder_layers=1, **sizes),
    )


@register_with_local("summarization/scitldr", local)
def summarization_scitldr() -> Recipe:
    """Abstracts to one sentence (SciTLDR, Cachola et al. 2020), each with several references."""
    return Recipe(
        doc="Train a Transformer that gives the abstract of a paper one sentence.",
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
    """The recipe with a tiny model: whether all fits together, in seconds."""
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
        doc="Train an LSTM over sentences that finds those which sum up a text.",
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
