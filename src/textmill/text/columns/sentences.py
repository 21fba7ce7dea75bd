"""Columns of sentences: the pieces of each, and how much of a summary it has."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.columns.column import Column, columns
from textmill.text.columns.words import PiecesColumn
from textmill.text.features.sentences import read_sentences
from textmill.text.features.word_pieces import WordPieces
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


@columns.register("overlaps")
class OverlapsColumn(Column):
    """How much each sentence of a row has of the row's summary; its text processor computes them.

    Example:
        >>> OverlapsColumn("target").encode([[0.25, 1.0], []])[0].tolist()
        [0.25, 1.0]
    """

    kind = "overlaps"
    dtype = np.float32

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        for row, value in enumerate(values):
            if not isinstance(value, list) or not all(isinstance(part, float) for part in value):
                raise DataError(
                    f"Row {row}, column '{self.name}': wanted a list of numbers, one for each "
                    f"sentence, found {value!r:.80}."
                )
        numbers = np.array([number for value in values for number in value], dtype=np.float32)
        return Ragged(numbers, offsets_of(np.array([len(value) for value in values], np.int64)))
