"""Experiments of document classification; set ``train_data.path`` and ``valid_data.path``."""

from pathlib import Path

from weft.config.recipe import Recipe, like, register_experiment
from weft.data.text_rows import TextRows
from weft.models.classifier import Classifier
from weft.models.encoders.lstm import LstmEncoder
from weft.models.encoders.sequence import SequenceEncoder
from weft.tasks.classification import DocumentClassification
from weft.text.labels import FittedLabels
from weft.text.words import FittedWords
from weft.training.loop import Trainer
from weft.training.optimizers import Adam
from weft.training.schedules import Linear
from weft.training.selection import Selection

__all__ = ["classification_bilstm", "classification_docnn"]


def classification(doc: str, model: Classifier.Config) -> Recipe:
    """A recipe that trains a classifier on rows of a label and a text."""
    return Recipe(
        doc=doc,
        train_data=TextRows.Config(path=Path("data/train.tsv")),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        tokenizer=FittedWords.Config(),
        labels=FittedLabels.Config(),
        model=model,
        task=DocumentClassification.Config(),
        optimizer=Adam.Config(lr=2e-3),
        lr_scheduler=Linear.Config(warmup_steps=100),
        trainer=Trainer.Config(max_epochs=10, selection=Selection.Config(metric="accuracy")),
    )


@register_experiment("classification/docnn")
def classification_docnn() -> Recipe:
    """A convolutional network over words (Kim 2014)."""
    return classification(
        "Train a convolutional classifier of documents (Kim 2014).", Classifier.Config()
    )


@register_experiment("classification/bilstm")
def classification_bilstm() -> Recipe:
    """A bidirectional LSTM with self-attention (Lin et al. 2017)."""
    encoder: SequenceEncoder.Config = LstmEncoder.Config()
    return classification(
        "Train a BiLSTM with self-attention that classifies documents.",
        Classifier.Config(encoder=encoder),
    )
