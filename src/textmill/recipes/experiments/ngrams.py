"""What the experiments ``…/ngrams`` share: linear models of n-grams, which train in seconds."""

from pathlib import Path
from typing import Any

from textmill.config.recipe import Recipe, like
from textmill.data.text_rows import TextRows
from textmill.text.tokenizers.ngram_tokenizer import FittedNgrams
from textmill.training import LBFGS, Every, Linear, Selection, Trainer

__all__ = ["MOST", "ngrams"]

MOST = 8192
"""N-grams of a text: those of a thousand words. A longer one loses its rarest."""


def ngrams(doc: str, columns: tuple[str, ...], metric: str, **ingredients: Any) -> Recipe:
    """A recipe that trains a linear model by sixty gradients of all rows."""
    texts = tuple(name for name in columns if name.startswith("text"))
    return Recipe(
        doc=doc,
        train_data=TextRows.Config(
            path=Path("data/train.tsv"), columns=columns, batch_size=1024, shuffle=False
        ),
        valid_data=like("train_data", path=Path("data/dev.tsv")),
        tokenizer=FittedNgrams.Config(columns=texts),
        optimizer=LBFGS.Config(),
        lr_scheduler=Linear.Config(hold=0.8),
        trainer=Trainer.Config(
            max_epochs=60,
            evaluate_every=Every(20, "epochs"),
            accumulate="epoch",
            clip_norm=None,
            selection=Selection.Config(metric=metric),
        ),
        **ingredients,
    )
