"""Extractive summaries: sentences of a text as columns, and those of them that say most."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.answers import Answer, MarkedText
from textmill.text.cells import Rows, no_column
from textmill.text.columns.column import Column, columns
from textmill.text.columns.words import PiecesColumn
from textmill.text.features.sentences import (
    REFERENCES,
    Sentences,
    overlap,
    read_sentences,
    references_of,
)
from textmill.text.features.spelling import WordPieces
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import text_processors
from textmill.text.ragged import Ragged, offsets_of


@columns.register("sentences")
class SentencesColumn(PiecesColumn):
    """The pieces of each sentence of a text, or of a list of sentences, in as many places each."""

    kind = "sentences"
    shares = False
    unit = "sentences"

    def __init__(
        self, feature: WordPieces, *, name: str | None = None, limit: int | None = None
    ) -> None:
        super().__init__(feature, name=name)
        self.limit = limit
        if limit is not None and limit < 1:
            raise UserError(f"A row keeps at least 1 sentence, but the limit is {limit}.")

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"pieces": self.feature}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [read_sentences(value, self.name, row).texts for row, value in enumerate(values)]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)) * self.width
        found = self.feature.table([sentence for row in rows for sentence in row])
        return Ragged(found.reshape(-1), offsets_of(lengths))

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        decoder, pad = self.feature.tokenizer.create_decoder(), self.pad
        return [decoder.batch([ids[ids != pad] for ids in row]) for row in encoded]


@columns.register("overlaps")
class OverlapsColumn(Column):
    """How much of its row's summary each sentence has, which its text processor tells."""

    kind = "overlaps"
    dtype = np.float32

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        numbers = np.array([number for value in values for number in value], dtype=np.float32)
        return Ragged(numbers, offsets_of(np.array([len(value) for value in values], np.int64)))

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        rows = zip(encoded, texts, strict=True)
        return [row[int(shares.argmax())] if row else "-" for shares, row in rows]


MOST = 20
"""Sentences of a summary."""


@dataclass(frozen=True)
class Extract(Answer):
    """Sentences of a text as its summary, in its order; ``str()`` gives them."""

    keys = ("prediction=text", "score", "sentences")

    sentences: tuple[MarkedText, ...]
    """Each with its characters in the text, and the probability that it says most of all."""

    @property
    def text(self) -> str:
        return " ".join(sentence.text for sentence in self.sentences)

    @property
    def score(self) -> float:
        return sum(sentence.score for sentence in self.sentences)

    @override
    def __str__(self) -> str:
        return self.text


@text_processors.register("extract")
class ExtractText(ColumnsText):
    """A text's sentences to those that say most of it."""

    answer_class = Extract
    kind = "extract"
    leading = "sentences"
    kinds = {"sentences": SentencesColumn, "overlaps": OverlapsColumn}  # noqa: RUF012
    target_roles = frozenset({"overlaps"})
    answer_settings = {"most": range(1, MOST + 1)}  # noqa: RUF012  # a ClassVar of the base
    most: int = 1
    """Sentences of a summary."""

    def sentences(self, row: Mapping[str, Any], number: int = 0) -> Sentences:
        name = self.inputs["sentences"].name
        return read_sentences(row[name], name, number)

    def references(self, row: Mapping[str, Any], number: int = 0) -> list[str]:
        """The right summaries of a row: its ``references``, or its target where it has none."""
        if REFERENCES in row:
            return references_of(row, number)
        if (name := self.targets["overlaps"].name) not in row:
            raise no_column(name, row, number)
        target = row[name]
        if not isinstance(target, str) or not target.strip():
            raise DataError(
                f"Row {number}, column '{name}': wanted a summary, found {target!r:.80}."
            )
        return [target]

    @override
    def with_read_targets(self, rows: Rows) -> Rows:
        """Rows with how much of a right summary each sentence has as their target."""
        name = self.targets["overlaps"].name
        return [{**row, name: self._overlaps(row, number)} for number, row in enumerate(rows)]

    def _overlaps(self, row: Mapping[str, Any], number: int) -> list[float]:
        if (column := self.inputs["sentences"].name) not in row:
            raise no_column(column, row, number)
        references = self.references(row, number)
        return [overlap(text, references) for text in self.sentences(row, number).texts]

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Any]:
        return [np.asarray(scores, dtype=np.float64) for scores in outputs]

    @override
    def completed(self, answer: Any, row: Mapping[str, Any]) -> Extract:
        text, places = self.sentences(row)
        scores = answer[: len(places)]
        chances = np.exp(scores - scores.max(initial=-np.inf)) if len(scores) else scores
        chances = chances / max(chances.sum(), 1e-30)
        best = np.argsort(-chances, kind="stable")[: self.most]
        return Extract(
            tuple(
                MarkedText(text=text[start:end], start=start, end=end, score=float(chances[at]))
                for at in sorted(best.tolist())
                for start, end in [places[at]]
            )
        )
