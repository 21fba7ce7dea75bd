"""Train an English-French translator on the Tatoeba sentence pairs.

The data is tab-separated: an English sentence, its French translation. See README.md for where to
get it.
"""

from pathlib import Path

from textmill import like
from textmill.data import TextPairs
from textmill.models import Transformer
from textmill.tasks import Translation
from textmill.text import FittedTokenizer
from textmill.training import AdamW, Every, Linear, Selection, Trainer

train_data = TextPairs.Config(path=Path("data/tatoeba/train.tsv"), max_tokens=2048)
valid_data = like("train_data", path=Path("data/tatoeba/dev.tsv"), shuffle=False)
tokenizer = FittedTokenizer.Config(vocab_size=5000, source_langs=("eng",), target_langs=("fra",))
model = Transformer.Config(dim=128, num_encoder_layers=4, num_decoder_layers=4, dropout=0.05)
task = Translation.Config(label_smoothing=0.1)
optimizer = AdamW.Config(lr=3e-3)
lr_scheduler = Linear.Config(warmup_steps=400)
trainer = Trainer.Config(
    max_steps=7000,  # about a quarter of an hour on two cores
    evaluate_every=Every(1400, "steps"),
    ema=0.999,  # of the weights, so that an evaluation in between is near its best
    selection=Selection.Config(metric="bleu"),
)
