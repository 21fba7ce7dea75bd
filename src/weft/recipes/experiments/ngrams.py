"""What the experiments ``…/ngrams`` share: linear models of n-grams, which train in seconds."""

from pathlib import Path
from typing import Any

from weft.config.recipe import Recipe, like
from weft.data.text_rows import TextRows
from weft.text.ngrams import FittedNgrams
from weft.training.loop import Trainer
from weft.training.optimizers import SGD
from weft.training.progress import Every
from weft.training.schedules import Linear
from weft.training.selection import Selection

__all__ = ["MOST", "ngrams"]

MOST = 8192
"""N-grams of a text: those of a thousand words. A longer one loses its rarest."""


def ngrams(
    doc: str, columns: tuple[str, ...], metric: str, *, lr: float, **ingredients: Any
) -> Recipe:
    """A recipe that trains a linear model.

    Momentum and a high rate, since the gradient of a convex loss never misleads; rate, epochs and
    decay were chosen on parts of the training rows of seven sets, at 500 to 10,000 rows.
    """
    texts = tuple(name for name in columns if name.startswith("text"))
    return Recipe(
        doc=doc,
        train_data=TextRows.Config(path=Path("data/train.tsv"), columns=columns, batch_size=64),
        valid_data=like("train_data", path=Path("data/dev.tsv"), shuffle=False),
        tokenizer=FittedNgrams.Config(columns=texts),
        optimizer=SGD.Config(lr=lr, momentum=0.9, weight_decay=1e-4),
        lr_scheduler=Linear.Config(),
        trainer=Trainer.Config(
            max_epochs=20,
            evaluate_every=Every(5, "epochs"),
            clip_norm=None,
            selection=Selection.Config(metric=metric),
        ),
        **ingredients,
    )
