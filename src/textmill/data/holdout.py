"""A share of rows that is held out of training, by a hash of each row.

A row's side follows from what it says alone: not from the others, their number or their order. So a
row keeps its side while a file grows, and rows that are the same are on one side. The price is that
the share is kept in expectation, of all rows and of those with one label, and not to the row.
"""

import hashlib
import logging
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError, UserError

LOG = logging.getLogger("textmill")

HASH = "textmill holdout"
"""Begins what is hashed, so that no other split by a hash, as of a prepared file, is this one."""


@dataclass(frozen=True)
class Holdout:
    """Which rows are held out."""

    share: float
    """Of all rows."""
    held_out: bool
    """Whether these are the rows, or all others."""
    label: str | None = None
    """A column whose every value keeps a row for training."""

    def __post_init__(self) -> None:
        if not 0 < self.share < 1:
            raise UserError(
                f"holdout: wanted a share of the rows, 0 or more and below 1, found {self.share:g}."
            )

    @property
    def rule(self) -> dict[str, float | bool | str]:
        """What a run writes down."""
        kept = f"; of each {self.label}, one row is kept for training" if self.label else ""
        rule = f"blake2b of the row's columns, by their names, below the share{kept}"
        return {"share": self.share, "held_out": self.held_out, "rule": rule}

    def of(
        self, rows: Sequence[Mapping[str, str]], *, name: str = "rows", owner: str = "train_data"
    ) -> NDArray[np.int64]:
        """The numbers of the rows of this side, rising; without a name nothing is logged.

        A label all of whose rows would be held out keeps the one with the greatest hash, and those
        that are the same, for training: else no model could learn it.
        """
        hashes = self._hashes(rows)
        held = hashes < self.share
        numbers: dict[str, int] = {}
        if self.label is not None and len(rows):
            if self.label not in rows[0]:
                raise UserError(
                    f"stratify: there is no column '{self.label}'; there are {', '.join(rows[0])}."
                )
            names = (str(row[self.label]) for row in rows)
            at = np.fromiter((numbers.setdefault(n, len(numbers)) for n in names), np.int64)
            greatest = np.zeros(len(numbers))
            np.maximum.at(greatest, at, hashes)
            held &= ~((greatest < self.share)[at] & (hashes == greatest[at]))
        found: NDArray[np.int64] = np.flatnonzero(held == self.held_out)
        kept = "held out" if self.held_out else "left for training"
        if not len(found) and self.label is not None and len(numbers) > len(rows) / 2 > 1:
            raise DataError(
                f"{name}: none of {len(rows)} rows is {kept}: the column '{self.label}' has "
                f"{len(numbers)} values ({', '.join(map(repr, [*numbers][:3]))}, ...), and each "
                "keeps a row for training. These are hardly labels. Say where the labels are: "
                f"{owner}.columns={{{self.label}: ...}}"
            )
        if not len(found):
            raise DataError(
                f"{name}: none of {len(rows)} rows is {kept} by holdout={self.share}: there are "
                "too few. Give more rows, another share, or a file of its own: valid_data.path=..."
            )
        if name:
            LOG.info("%s: %s of %s rows are %s.", name, f"{len(found):,}", f"{len(rows):,}", kept)
        return found

    def _hashes(self, rows: Sequence[Mapping[str, str]]) -> NDArray[np.float64]:
        return np.fromiter(map(_hash, rows), np.float64, len(rows))


class PassageHoldout(Holdout):
    """Which lines of a text are held out: those of whole passages, as lines go on from each other.

    A passage ends with one or more blank lines; in a text without any, each line is one.
    """

    @property
    @override
    def rule(self) -> dict[str, float | bool | str]:
        rule = "blake2b of each passage between blank lines, or of each line, below the share"
        return {**super().rule, "rule": rule}

    @override
    def _hashes(self, rows: Sequence[Mapping[str, str]]) -> NDArray[np.float64]:
        passages = [*_passages(rows)]
        hashes = (_hash({"text": "\n".join(lines).strip()}) for lines in passages)
        found = np.fromiter(hashes, np.float64, len(passages))
        return np.repeat(found, [len(lines) for lines in passages])


def _passages(rows: Sequence[Mapping[str, str]]) -> Iterator[list[str]]:
    """The lines of each passage, with the blank lines after it."""
    line_by_line = all(row["text"].strip() for row in rows)
    passage: list[str] = []
    for row in rows:
        ended = passage and (line_by_line or not passage[-1].strip())
        if ended and row["text"].strip():
            yield passage
            passage = []
        passage.append(row["text"])
    if passage:
        yield passage


def _hash(row: Mapping[str, str]) -> float:
    """A hash of a row, from 0 to 1, whatever the order of its columns."""
    said = "\x1f".join([HASH, *(f"{name}\x1e{row[name]}" for name in sorted(row))])
    digest = hashlib.blake2b(said.encode("utf-8", "surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) / 2**64
