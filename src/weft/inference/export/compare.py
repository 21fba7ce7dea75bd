"""An export beside the model that it was made of, on real rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from weft.exported.manifest import ExportError
from weft.exported.seq2seq import ExportedSeq2Seq
from weft.inference.load import Predictor
from weft.tasks.seq2seq import Seq2Seq
from weft.tasks.task import Row

__all__ = ["MOST_DIFFERENT", "TOLERANCE", "Comparison", "compare"]

TOLERANCE = 1e-3
"""Most by which a log-probability may differ, as a mean over the tokens of an answer, in nats.
Sums in another order differ by some 1e-6; a wrong weight by tenths."""
MOST_DIFFERENT = 0.05
"""Largest share of rows whose answers may differ: where two tokens are equally likely to the last
digit, or a beam search ends by another rule."""


@dataclass(frozen=True)
class Comparison:
    """What the comparison found."""

    rows: int
    """Rows compared."""
    where: str
    """Where they come from."""
    same: int
    """Rows with the same text as answer."""
    largest: float
    """Largest difference of a log-probability, see :data:`TOLERANCE`; infinite where either is not
    a finite number."""

    def check(self) -> None:
        """Refuses an export that differs by more than is allowed.

        Raises:
            ExportError: With both numbers and what is allowed.

        Example:
            >>> Comparison(rows=40, where="valid_data", same=38, largest=2e-6).check()
            >>> Comparison(rows=40, where="valid_data", same=37, largest=2e-6).check()
            Traceback (most recent call last):
            weft.exported.manifest.ExportError: The export differs from the model on 40 rows ...
        """
        if not self.largest <= TOLERANCE or self.rows - self.same > MOST_DIFFERENT * self.rows:
            by = f"by up to {self.largest:.2g} (allowed: {TOLERANCE:g})"
            if not math.isfinite(self.largest):
                by = "are not all finite numbers: there is NaN or infinity in the weights"
            raise ExportError(
                f"The export differs from the model on {self.rows} rows of {self.where}: "
                f"{self.rows - self.same} answers differ (allowed: {MOST_DIFFERENT:.0%}), "
                f"log-probabilities a token {by}. Nothing was written."
            )

    @property
    def sentence(self) -> str:
        """What was compared and found, for a person.

        Example:
            >>> Comparison(rows=40, where="valid_data", same=38, largest=2e-6).sentence[:59]
            'Compared on 40 rows of valid_data: 38 answers are the same,'
        """
        return (
            f"Compared on {self.rows:,} rows of {self.where}: {self.same:,} answers are the same, "
            f"log-probabilities a token differ by at most {self.largest:.1g}."
        )

    def to_json(self) -> dict[str, Any]:
        """As JSON values, with what was allowed."""
        return {
            "rows": self.rows,
            "where": self.where,
            "same": self.same,
            "largest_difference": self.largest,
            "tolerance": TOLERANCE,
            "most_different": MOST_DIFFERENT,
        }


def compare(
    predictor: Predictor, exported: ExportedSeq2Seq, rows: Sequence[Row], *, where: str
) -> Comparison:
    """Asks both the same rows, and the model for the probability of what the export answers.

    Args:
        predictor: The model.
        exported: What was made of it.
        rows: At least one row that both can answer.
        where: Where they come from.
    """
    task = predictor.task
    assert isinstance(task, Seq2Seq), "others are refused before"
    sources = exported.encoded(rows)
    found = [hypotheses[0] for hypotheses in exported.find(sources)]
    texts = exported.text.decode([hypothesis.ids for hypothesis in found])
    answers = predictor.answers(rows)
    same = sum(text == answer.text for text, answer in zip(texts, answers, strict=True))
    largest, power = 0.0, exported.search.length_penalty
    for source, hypothesis in zip(sources, found, strict=True):
        limit = exported.search.limit(len(source))
        total, count = _log_probability(task, source, hypothesis.ids, limit=limit)
        difference = abs(hypothesis.score * count**power - total) / count
        largest = max(largest, difference if math.isfinite(difference) else math.inf)
    return Comparison(len(rows), where, same, largest)


@torch.inference_mode()
def _log_probability(
    task: Seq2Seq, source: list[int], ids: list[int], *, limit: int
) -> tuple[float, int]:
    """What the model gives to a whole target, and the number of tokens in that."""
    labels = [*ids, task.eos_idx] if len(ids) < limit else ids
    prefix = task.text.target_prefix
    device = task.device
    logits = task.module(
        torch.tensor([source], device=device),
        torch.tensor([len(source)], device=device),
        torch.tensor([[*prefix, *labels[:-1]]], device=device),
    )[0, len(prefix) - 1 :]
    chosen = logits.float().log_softmax(dim=1)[torch.arange(len(labels)), torch.tensor(labels)]
    return float(chosen.sum()), len(labels)
