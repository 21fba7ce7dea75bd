"""Experiments of regression of documents; set ``train_data.path`` and ``valid_data.path``."""

from pathlib import Path

from textmill.config.recipe import Recipe, like, register_experiment
from textmill.data.text_rows import TextRows
from textmill.models.classifier import Regressor
from textmill.models.encoders.sequence import CnnEncoder, SequenceEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.ngrams import NgramRegressor
from textmill.recipes.experiments.ngrams import MOST, local_ngrams, ngrams
from textmill.recipes.experiments.tiny import register_with_local
from textmill.tasks.regression import DocumentRegression
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Linear, Selection, Trainer


def regression(model: Regressor.Config, trainer: Trainer.Config) -> Recipe:
    """A recipe that trains a regressor on rows of a number and a text."""
    return Recipe(
        doc="Train a convolutional network (Kim 2014) that gives texts a number.",
        train_data=TextRows.Config(path=Path("data/train.tsv"), columns=("score", "text")),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        tokenizer=FittedWords.Config(),
        model=model,
        task=DocumentRegression.Config(),
        optimizer=Adam.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=100),
        trainer=trainer,
    )


@register_experiment("regression/docnn")
def regression_docnn() -> Recipe:
    """A convolutional network over words (Kim 2014)."""
    best = Selection.Config(metric="pearson")
    return regression(Regressor.Config(), Trainer.Config(max_epochs=10, selection=best))


@register_experiment("regression/docnn/local")
def regression_docnn_local() -> Recipe:
    """The same, tiny: twenty steps."""
    encoder: SequenceEncoder.Config = CnnEncoder.Config(filters=8)
    model = Regressor.Config(embedding=WordEmbedding.Config(dim=16), encoder=encoder)
    return regression(model, Trainer.Config(max_steps=20))


@register_with_local("regression/ngrams", local_ngrams)
def regression_ngrams() -> Recipe:
    """A ridge regression over n-grams of words and characters; rows of score, text."""
    return ngrams(
        "Train a linear model over n-grams that gives texts a number.",
        ("score", "text"),
        "pearson",
        model=NgramRegressor.Config(),
        task=DocumentRegression.Config(max_length=MOST),
    )
