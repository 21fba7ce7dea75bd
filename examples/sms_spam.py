"""Tell spam from ham: short messages, a label and a text in each line.

The data is tab-separated: ``ham`` or ``spam``, the message. It is the SMS Spam Collection of
Almeida and Gómez Hidalgo, in a part to train on and a part to choose the best weights by.
"""

from pathlib import Path

from textmill import like
from textmill.data.text_rows import TextRows
from textmill.models.classifier import Classifier
from textmill.models.encoders.lstm import LstmEncoder
from textmill.tasks.classification import DocumentClassification
from textmill.text import FittedTokenizer
from textmill.text.features.labels import FittedLabels
from textmill.training import Adam, Linear, Selection, Trainer

train_data = TextRows.Config(path=Path("data/sms-spam/train.tsv"))
valid_data = like("train_data", path=Path("data/sms-spam/dev.tsv"), shuffle=False)
tokenizer = FittedTokenizer.Config(kind="bpe", vocab_size=2000, columns=("text",))
labels = FittedLabels.Config()
model = Classifier.Config(encoder=LstmEncoder.Config())
task = DocumentClassification.Config(positive="spam", rank_metrics=True)
optimizer = Adam.Config(lr=2e-3)
lr_scheduler = Linear.Config(warmup_steps=100)
trainer = Trainer.Config(max_epochs=8, selection=Selection.Config(metric="f1"))
