"""An export beside the model that it was made of, on real rows."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch

from textmill.exported.ctranslate2 import CTranslate2Graph
from textmill.exported.manifest import ExportError
from textmill.exported.row_predictor import RowPredictor
from textmill.exported.seq2seq import ExportedSeq2Seq
from textmill.inference.export.quality import Quality
from textmill.inference.load import Predictor
from textmill.tasks.seq2seq import Seq2Seq
from textmill.tasks.task import Row

TOLERANCE = 1e-3
"""Most by which a log-probability may differ, as a mean over the tokens of an answer, in nats.
Sums in another order differ by some 1e-6; a wrong weight by tenths."""
NUMBER_TOLERANCE = 1e-4
"""Most by which a number of an answer may differ, as a probability; of one above 1, that share."""
MOST_DIFFERENT = 0.05
"""Largest share of rows whose answers may differ: where two tokens or labels are equally likely to
the last digit, or a beam search ends by another rule."""


@dataclass(frozen=True)
class Comparison:
    """What the comparison found."""

    rows: int
    """Rows compared."""
    where: str
    """Where they come from."""
    same: int
    """Rows with the same answer."""
    largest: float
    """Largest difference of a number; infinite where either is not a finite number."""
    numbers: str = "log-probabilities a token"
    """What numbers those are."""
    tolerance: float = TOLERANCE
    """Most that is allowed."""
    worst: str = ""
    """The row with the largest difference, or the first with another answer, in words."""
    things: str = "answers are the same"
    """What ``same`` counts, in words."""
    note: str = ""
    """What else a person should know of the export."""
    quality: Quality | None = None
    """Of a quantized export what was measured; its numbers may differ by anything finite."""

    def check(self) -> None:
        """Refuses an export that differs by more than is allowed.

        Raises:
            ExportError: With both numbers, what is allowed, and the row.

        Example:
            >>> Comparison(rows=40, where="valid_data", same=38, largest=2e-6).check()
            >>> Comparison(rows=40, where="valid_data", same=37, largest=2e-6).check()
            Traceback (most recent call last):
            textmill.exported.manifest.ExportError: The export differs from the model on 40 rows ...
        """
        if self.quality is not None and math.isfinite(self.largest):
            self.quality.check()
            return
        allowed = MOST_DIFFERENT * self.rows
        if not self.largest <= self.tolerance or self.rows - self.same > allowed:
            by = f"by up to {self.largest:.2g} (allowed: {self.tolerance:g})"
            if not math.isfinite(self.largest):
                by = "are not all finite numbers: there is NaN or infinity in the weights"
            raise ExportError(
                f"The export differs from the model on {self.rows} rows of {self.where}: "
                f"{self.rows - self.same} answers differ (allowed: {MOST_DIFFERENT:.0%}), "
                f"{self.numbers} {by}.{self.worst and f' Most in {self.worst}.'} "
                "Nothing was written."
            )

    @property
    def sentence(self) -> str:
        """What was compared and found, for a person.

        Example:
            >>> Comparison(rows=40, where="valid_data", same=38, largest=2e-6).sentence[:59]
            'Compared on 40 rows of valid_data: 38 answers are the same,'
        """
        compared = (
            f"Compared on {self.rows:,} rows of {self.where}: {self.same:,} {self.things}, "
            f"{self.numbers} differ by at most {self.largest:.1g}."
        )
        more = self.note if self.quality is None else self.quality.sentence
        return f"{more} {compared}" if more else compared

    def to_json(self) -> dict[str, Any]:
        """As JSON values, with what was allowed."""
        found = {
            "rows": self.rows,
            "where": self.where,
            "same": self.same,
            "largest_difference": self.largest,
        }
        if self.quality is not None:
            return {**found, "quality": self.quality.to_json()}
        return {**found, "tolerance": self.tolerance, "most_different": MOST_DIFFERENT}


def compare(
    predictor: Predictor,
    exported: RowPredictor,
    rows: Sequence[Row],
    *,
    where: str,
) -> Comparison:
    """Asks both the same rows, and compares what they say.

    Args:
        predictor: The model.
        exported: What was made of it.
        rows: At least one row that both can answer.
        where: Where they come from.
    """
    if isinstance(exported, ExportedSeq2Seq) and isinstance(exported.graph, CTranslate2Graph):
        return _compare_texts(predictor, exported, rows, where=where)
    return _compare_answers(predictor, exported, rows, where=where)


def _compare_answers(
    predictor: Predictor, exported: RowPredictor, rows: Sequence[Row], *, where: str
) -> Comparison:
    """The answers as plain data; the export is asked row by row, and all at once."""
    expected = [predictor.answer_row(answer) for answer in predictor.answers(rows)]
    together = [exported.answer_row(answer) for answer in exported.answers(rows)]
    alone = [exported.answer_row(exported.answers([row])[0]) for row in rows]
    same, largest, worst = 0, 0.0, ""
    for number, (wanted, *found) in enumerate(zip(expected, together, alone, strict=True)):
        differences = [difference(wanted, each) for each in found]
        known = [each for each in differences if each is not None]
        same += len(known) == len(found)
        if len(known) < len(found) and not worst:
            worst = f"row {number}"
        if known and not max(known) <= largest:
            largest, worst = max(known), f"row {number}"
    named = f"{worst} ({shown(rows[int(worst[4:])])})" if worst else ""
    return Comparison(
        len(rows), where, same, largest, "numbers of answers", NUMBER_TOLERANCE, named
    )


def shown(row: Row) -> str:
    """A row in words, for an error."""
    return ", ".join(f"{name}: {value!r:.60}" for name, value in row.items())


def difference(wanted: Any, found: Any) -> float | None:
    """How far numbers of two answers are apart; None: the answers differ in something else.

    >>> difference({"label": "a", "score": 0.5}, {"label": "a", "score": 0.25})
    0.25
    >>> difference({"label": "a"}, {"label": "b"})
    """
    if isinstance(wanted, float) and isinstance(found, float):
        apart = abs(wanted - found) / max(1.0, abs(wanted))
        return apart if math.isfinite(apart) else math.inf
    if isinstance(wanted, dict) and isinstance(found, dict) and set(wanted) == set(found):
        return _most([difference(wanted[name], found[name]) for name in wanted])
    if isinstance(wanted, list | tuple) and isinstance(found, list | tuple):
        if len(wanted) != len(found):
            return None
        return _most([difference(*pair) for pair in zip(wanted, found, strict=True)])
    return 0.0 if wanted == found else None


def _most(differences: Sequence[float | None]) -> float | None:
    known = [each for each in differences if each is not None]
    return max(known, default=0.0) if len(known) == len(differences) else None


def _compare_texts(
    predictor: Predictor, exported: ExportedSeq2Seq, rows: Sequence[Row], *, where: str
) -> Comparison:
    """The answers, and what the model gives to the tokens that the export answers."""
    task = predictor.task
    assert isinstance(task, Seq2Seq), "others are refused before"
    sources, forced = exported.encoded(rows), exported.forced(rows)
    found = [hypotheses[:1] for hypotheses in exported.graph.find(sources, forced)]
    answers = zip(predictor.answers(rows), exported.answers_of(found, rows), strict=True)
    same = sum(ours.text == theirs.text for ours, theirs in answers)
    largest, power = 0.0, exported.search.length_penalty
    for number, (source, [hypothesis]) in enumerate(zip(sources, found, strict=True)):
        limit = exported.search.limit(len(source), len(forced[number]) if forced else 0)
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
    banned = getattr(task.module, "banned", None)  # what is never answered
    if banned is not None and len(banned):
        logits = logits.index_fill(1, banned, -torch.inf)
    chosen = logits.float().log_softmax(dim=1)[torch.arange(len(labels)), torch.tensor(labels)]
    return float(chosen.sum()), len(labels)
