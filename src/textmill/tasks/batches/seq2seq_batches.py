"""Batches of encoded sources and targets, of the rows that are not too long."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np
from numpy.typing import NDArray
from torch.nn.functional import pad

from textmill.data.batches import EpochBatches
from textmill.data.batching import Batching
from textmill.data.seq2seq_batch import Seq2SeqBatch, collate_seq2seq
from textmill.errors import DataError
from textmill.text.processors.text_processor import Encoded, longest_texts
from textmill.text.ragged import Ragged


@dataclass
class Fitting:
    """What is trained on, or evaluated, of encoded rows."""

    columns: dict[str, Ragged]
    """Sources and targets. *Shape:* ``[n]`` rows each."""
    rows: NDArray[np.int64] | None = None
    """The rows that are not too long; None: all of them."""
    details: dict[str, str] = field(default_factory=dict)
    """What is to be said of those that are, by the value that it is said of."""

    @classmethod
    def of(
        cls,
        encoded: Encoded,
        limits: Mapping[str, int | None],
        *,
        skip: bool,
        train: bool,
        remedy: str,
    ) -> Self:
        """Leaves out the rows that are too long, or refuses them.

        An evaluation cuts a target that alone is too long to its start mark, which leaves it
        without a label: its source is still translated, and compared with its text. ``remedy`` is
        a sentence that says what to do.

        Raises:
            DataError: Rows are too long, and none is to be left out.
        """
        found, over = cls(dict(encoded.columns)), encoded.over_length
        count = encoded.num_rows
        most = f"{limits['source']} source or {limits['target']} target tokens"
        if skip and not train and len(over):
            over = found._cut_targets(limits)
            most = f"{limits['source']} source tokens"
        if len(over) and not skip:
            listed = ", ".join(map(str, over[:20].tolist())) + (", ..." if len(over) > 20 else "")
            raise DataError(
                f"{len(over)} of {count} rows have more than {most}: rows {listed} (from 0); "
                f"{longest_texts(found.columns, limits)}. {remedy}"
            )
        if len(over):
            found.details["left_out"] = f"{len(over)} of {count} rows left out: more than {most}."
            found.rows = np.delete(np.arange(count), over)
        return found

    def _cut_targets(self, limits: Mapping[str, int | None]) -> NDArray[np.int64]:
        """Cuts targets that are too long; gives the rows with too long a source."""
        sources, targets = (
            self.columns[side].lengths > (np.inf if (limit := limits[side]) is None else limit)
            for side in ("source", "target")
        )
        targets &= ~sources
        if targets.any():
            pairs = zip(self.columns["target"], targets, strict=True)
            self.columns["target"] = Ragged.from_lists(
                [ids[: 1 if cut else None].tolist() for ids, cut in pairs]
            )
            self.details["loss"] = (
                f"{int(targets.sum())} of {len(targets)} rows do not count in the loss: more than "
                f"{limits['target']} target tokens."
            )
        return np.flatnonzero(sources)


def seq2seq_batches(
    columns: Mapping[str, Ragged],
    batching: Batching,
    *,
    pad_idx: int,
    seed: int,
    rows: NDArray[np.int64] | None = None,
) -> EpochBatches[Seq2SeqBatch]:
    """Batches of encoded sources, and of targets where there are such."""

    def collate(indices: NDArray[np.int64]) -> Seq2SeqBatch:
        batch = collate_seq2seq(columns, indices, pad_idx=pad_idx)
        if batch.target is None or batch.target.shape[1] > 1:
            return batch
        # Only targets that do not count: the decoder still reads one position.
        return replace(batch, target=pad(batch.target, (0, 1), value=pad_idx))

    return EpochBatches(columns, batching, collate, seed=seed, rows=rows)
