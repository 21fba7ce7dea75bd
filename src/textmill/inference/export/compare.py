"""An export beside the model that it was made of, on real rows."""

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from textmill.exported.manifest import ExportError
from textmill.exported.row_predictor import RowPredictor
from textmill.inference.export.quality import Quality
from textmill.inference.load import Predictor
from textmill.tasks.task import Row

LOG_PROBABILITIES = "log-probabilities a token", 1e-3
"""What is compared and the largest difference allowed: the mean over an answer's tokens, in nats.
Another order of summation makes 1e-6; a wrong weight makes tenths."""
NUMBERS = "numbers of answers", 1e-4
"""The same for numbers: absolute up to 1, relative above."""
MOST_DIFFERENT = 0.05
"""Largest share of rows whose answers may differ: two tokens or labels may be equally likely to the
last digit, and a beam search may end by another rule."""


@dataclass(frozen=True)
class Comparison:
    """How the answers of an export and of its run differ."""

    rows: int
    """Rows compared."""
    same: int
    """Rows with the same answer."""
    largest: float
    """Largest difference of a number; infinite where either is not a finite number."""
    numbers: str = LOG_PROBABILITIES[0]
    """Which numbers were compared, for messages."""
    tolerance: float = LOG_PROBABILITIES[1]
    """Largest difference allowed."""
    where: str = ""
    """Where the rows come from."""
    worst: str = ""
    """The row with the largest difference, or the first with another answer, in words."""
    things: str = "answers are the same"
    """What ``same`` counts, in words."""
    note: str = ""
    """What else a person should know about the export."""
    quality: Quality | None = None
    """Metrics of a quantized export, which decide instead of the tolerance; else None."""

    def check(self) -> None:
        """Refuses an export that differs by more than is allowed."""
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
    rows: Sequence[Row],
    apart: Iterable[tuple[bool, float]],
    numbers: tuple[str, float] = NUMBERS,
    *,
    things: str = "answers are the same",
    note: str = "",
) -> Comparison:
    """Sums up how the answers of an export and of its run to real rows differ.

    ``apart`` says of each row whether the answers are the same, and how far their numbers are
    apart; ``numbers`` what these are, and by how much they may differ.
    """
    same, largest, worst, other = 0, 0.0, -1, -1
    for number, (is_same, distance) in enumerate(apart):
        same += is_same
        if not is_same and other < 0:
            other = number
        if not distance <= largest:
            largest, worst = (distance if math.isfinite(distance) else math.inf), number
    named = worst if other < 0 else other
    where = f"row {named} ({shown(rows[named])})" if named >= 0 else ""
    return Comparison(len(rows), same, largest, *numbers, worst=where, things=things, note=note)


def answers_apart(
    predictor: Predictor, exported: RowPredictor, rows: Sequence[Row]
) -> Iterator[tuple[bool, float]]:
    """For :func:`compare`: the export is asked row by row, and all at once."""
    expected = [predictor.answer_row(answer) for answer in predictor.answers(rows)]
    together = [exported.answer_row(answer) for answer in exported.answers(rows)]
    alone = [exported.answer_row(exported.answers([row])[0]) for row in rows]
    for wanted, *found in zip(expected, together, alone, strict=True):
        differences = [difference(wanted, each) for each in found]
        yield None not in differences, max((d for d in differences if d is not None), default=0.0)


def shown(row: Row) -> str:
    """A row in words, for an error."""
    return ", ".join(f"{name}: {value!r:.60}" for name, value in row.items())


def difference(wanted: Any, found: Any) -> float | None:
    """How far numbers of two answers are apart; None: the answers differ in something else."""
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
