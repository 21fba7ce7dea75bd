"""What the data of a run is like, for its record: rows, batches, padding, lengths."""

from typing import Any

import numpy as np

from weft.config.session import Session
from weft.data.bad_rows import AccountedRows
from weft.data.batches import EpochBatches
from weft.data.huggingface import HuggingFacePairs
from weft.data.text_pairs import TextPairs
from weft.recipes.reading import DATA
from weft.tasks.row_batches import RowBatches
from weft.training.loop import Trainer

__all__ = ["data_summary", "summary_of_batches"]


def data_summary(session: Session, trainer: object) -> dict[str, dict[str, Any]]:
    """Facts of each data set by its name; what it cannot tell of itself is left out.

    Args:
        session: What was built, for the rows that were read.
        trainer: What was built last, for the batches; one of the recipe's own has none to show.
    """
    made: dict[str, object] = {}
    if isinstance(trainer, Trainer):
        made = dict(zip(DATA, (trainer.data.data, trainer.valid, trainer.test), strict=True))
    found = {}
    for name in (name for name in DATA if session.has(name)):
        facts = summary_of_batches(made.get(name))
        data = session.get(name)
        if isinstance(data, AccountedRows):
            facts |= {"rows": data.count.good, "bad_rows": data.count.bad}
        if isinstance(data, TextPairs | HuggingFacePairs) and data.holdout is not None:
            facts["holdout"] = data.holdout.rule
        if facts:
            found[name] = facts
    return found


def summary_of_batches(batches: object) -> dict[str, Any]:
    """Rows, batches, padding and lengths in tokens of one epoch.

    Example:
        >>> summary_of_batches([])
        {}
    """
    epoch = batches.batches if isinstance(batches, RowBatches) else None
    if not isinstance(epoch, EpochBatches):
        return {}
    found = epoch.statistics
    lengths = {
        column: {
            "least": int(values.min()),
            "median": int(np.median(values)),
            "most_95": int(np.percentile(values, 95)),
            "most": int(values.max()),
        }
        for column, values in epoch.lengths.items()
    }
    return {
        "rows": found.rows,
        "batches": found.batches,
        "tokens": found.tokens,
        "padding": round(found.padding, 6),
        "lengths": lengths,
    }
