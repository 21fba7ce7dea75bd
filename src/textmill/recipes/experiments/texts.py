"""Classification and regression of documents; set ``train_data.path`` and ``valid_data.path``."""

from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.models.classifier import Classifier, Regressor
from textmill.models.encoders.lstm import LstmEncoder
from textmill.models.encoders.self_attention import SelfAttentionEncoder
from textmill.models.encoders.sequence import AveragingEncoder, CnnEncoder, SequenceEncoder
from textmill.models.layers.word_embeddings import WordEmbedding
from textmill.models.ngrams import NgramClassifier, NgramRegressor
from textmill.recipes.experiments.variants import local_ngrams, ngrams, register_with_local, tiny
from textmill.tasks.classification import DocumentClassification
from textmill.tasks.regression import DocumentRegression
from textmill.text.columns.words import MOST_NGRAMS
from textmill.text.features.labels import FittedLabels
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.text.tokenizers.word_tokenizer import FittedWords
from textmill.training import Adam, Linear, Selection, Trainer

EMBEDDING = WordEmbedding.Config(dropout=0.3)
LOCAL = WordEmbedding.Config(dim=16)
TINY_CNN: SequenceEncoder.Config = CnnEncoder.Config(filters=8)


def classification(
    encoder: SequenceEncoder.Config,
    *,
    embedding: WordEmbedding.Config = EMBEDDING,
    hidden: tuple[int, ...] = (),
    lr: float = 2e-3,
) -> Recipe:
    """A recipe that trains a classifier on rows of a label and a text.

    Its tokens are pieces of words: numbers, names and misspelt words that training did not have
    still have known parts. The n-grams beside them are what few rows are enough for.
    """
    return Recipe(
        train_data=TextRows.Config(path=Path("data/train.tsv")),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        tokenizer=FittedTokenizer.Config(kind="bpe", vocab_size=2000, columns=("text",)),
        ngrams=FittedNgrams.Config(vocab_size=30_000),
        labels=FittedLabels.Config(),
        model=Classifier.Config(embedding=embedding, encoder=encoder, hidden=hidden),
        task=DocumentClassification.Config(),
        optimizer=Adam.Config(lr=lr),
        lr_scheduler=Linear.Config(warmup_steps=20),
        trainer=Trainer.Config(max_epochs=20, selection=Selection.Config(metric="accuracy")),
    )


def local(recipe: Recipe, encoder: SequenceEncoder.Config, **model: Any) -> Recipe:
    """The recipe with a tiny model of words."""
    return tiny(
        recipe,
        tokenizer=FittedWords.Config(),  # few rows give hardly any pieces
        model=Classifier.Config(embedding=LOCAL, encoder=encoder, **model),
        optimizer=Adam.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=5),
    )


@register_with_local("classification/docnn", partial(local, encoder=TINY_CNN))
def classification_docnn() -> Recipe:
    """A classifier of texts: a convolutional network (Kim 2014) over pieces of words."""
    return classification(CnnEncoder.Config(widths=(2, 3, 4, 5)))


@register_with_local(
    "classification/bilstm", partial(local, encoder=LstmEncoder.Config(hidden_dim=8))
)
def classification_bilstm() -> Recipe:
    """A classifier of texts: a bidirectional LSTM with self-attention (Lin et al. 2017)."""
    return classification(LstmEncoder.Config())


@register_with_local("classification/averaging", partial(local, encoder=AveragingEncoder.Config()))
def classification_averaging() -> Recipe:
    """A classifier of texts: a deep averaging network (Iyyer et al. 2015)."""
    return classification(AveragingEncoder.Config(), hidden=(100,))


@register_with_local(
    "classification/transformer",
    partial(local, encoder=SelfAttentionEncoder.Config(num_layers=1, num_heads=2, ffn_dim=32)),
)
def classification_transformer() -> Recipe:
    """A classifier of texts: a Transformer encoder whose vectors are averaged."""
    embedding = WordEmbedding.Config(dim=128)
    return classification(SelfAttentionEncoder.Config(), embedding=embedding, lr=5e-4)


@register_with_local(
    "classification/sentences",
    partial(local, encoder=TINY_CNN, sequence=LstmEncoder.Config(hidden_dim=8)),
)
def classification_sentences() -> Recipe:
    """A classifier of lists of texts: a convolution over each, and an LSTM over their vectors.

    Rows are a label and a list of texts, in TSV as JSON, such as the turns of a conversation.
    """
    made = classification(CnnEncoder.Config(widths=(2, 3, 4, 5))).ingredients
    made["train_data"] = replace(made["train_data"], lists=("text",))
    made["tokenizer"] = FittedWords.Config(min_count=2)
    made["model"] = replace(made["model"], sequence=LstmEncoder.Config())
    made["task"] = DocumentClassification.Config(max_length=128, max_texts=50)
    return Recipe(**made)


@register_with_local("classification/ngrams", local_ngrams)
def classification_ngrams() -> Recipe:
    """A linear classifier over n-grams of words and characters; rows of label, text.

    Thousands of rows take seconds.
    """
    return ngrams(
        ("label", "text"),
        "accuracy",
        labels=FittedLabels.Config(),
        model=NgramClassifier.Config(),
        task=DocumentClassification.Config(max_length=MOST_NGRAMS),
    )


TINY_REGRESSOR = Regressor.Config(embedding=LOCAL, encoder=TINY_CNN)
WARMUP = Linear.Config(warmup_steps=100)


@register_with_local(
    "regression/docnn",
    partial(tiny, model=TINY_REGRESSOR, lr_scheduler=WARMUP, trainer=Trainer.Config()),
)
def regression_docnn() -> Recipe:
    """A convolutional network over words (Kim 2014) that gives texts a number."""
    return Recipe(
        train_data=TextRows.Config(path=Path("data/train.tsv"), columns=("score", "text")),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        tokenizer=FittedWords.Config(),
        model=Regressor.Config(),
        task=DocumentRegression.Config(),
        optimizer=Adam.Config(lr=2e-3),
        lr_scheduler=WARMUP,
        trainer=Trainer.Config(max_epochs=10, selection=Selection.Config(metric="pearson")),
    )


@register_with_local("regression/ngrams", local_ngrams)
def regression_ngrams() -> Recipe:
    """A ridge regression of n-grams, which gives texts a number; rows of score, text."""
    return ngrams(
        ("score", "text"),
        "pearson",
        model=NgramRegressor.Config(),
        task=DocumentRegression.Config(max_length=MOST_NGRAMS),
    )
