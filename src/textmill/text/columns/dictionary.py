"""Columns of what a dictionary knows of words: places, kinds, and weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.columns.column import Column, columns
from textmill.text.columns.token_ids import IdsColumn
from textmill.text.columns.words import check_words
from textmill.text.features.dictionaries import Dictionary, GivenKinds, Phrases
from textmill.text.ragged import Ragged


class DictionaryColumn(Column):
    """What a dictionary finds in each row: the place of a word, its kind's number and its weight.

    A row has three numbers for each finding and none for a word that nothing is known of: most
    words of a text are in no dictionary.

    Args:
        dictionary: The dictionary, and its column.
        text: The role of the column that has the words.
    """

    dtype = np.float32  # exact for places and numbers up to 2**24
    sorted = False
    width = 3

    def __init__(self, dictionary: Dictionary, *, text: str = "text") -> None:
        super().__init__(dictionary.column, dictionary=dictionary)
        self.dictionary, self.text = dictionary, text

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [self.dictionary.find(value, row) for row, value in enumerate(values)]
        table = np.array([finding for row in rows for finding in row], dtype=np.float32)
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        offsets = np.concatenate([[0], np.cumsum(counts * self.width)]).astype(np.int64)
        return Ragged(table.reshape(-1), offsets)

    @override
    def check_beside(self, role: str, columns: Mapping[str, Column]) -> None:
        words = columns.get(self.text)
        if not isinstance(words, IdsColumn):
            raise UserError(
                f"The {role} belongs to the words of '{self.text}', which is not a text column."
            )
        check_words(words.name, words.tokenizer)

    @override
    def check(self, encoded: Mapping[str, Ragged], kinds: Mapping[str, Column]) -> None:
        """Refuses kinds of a word after the last one of its row."""
        own = next(role for role, column in kinds.items() if column is self)
        words = encoded[self.text].lengths
        rows, places = self._places(encoded[own])
        behind = np.flatnonzero(places >= words[rows])
        if len(behind):
            row, place = int(rows[behind[0]]), int(places[behind[0]])
            raise DataError(
                f"Row {row}, column '{self.name}': has kinds of the word at {place} (from 0), but "
                f"the text in '{kinds[self.text].name}' has {words[row]} words."
            )

    def known(self, encoded: Ragged) -> int:
        """Of how many words something is known.

        Example:
            >>> column = PhrasesColumn(Phrases([("city", "ur"), ("river", "ur"), ("city", "rome")]))
            >>> column.known(column.encode(["Ur and Rome", "up", "Ur"]))
            3
        """
        rows, places = self._places(encoded)
        return len({*zip(rows.tolist(), places.tolist(), strict=True)})

    def _places(self, encoded: Ragged) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        """The row and the word of each finding."""
        rows = np.repeat(np.arange(len(encoded)), encoded.lengths // self.width)
        return rows, encoded.values[:: self.width]

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        """Encoded rows without the kinds of words after the limit."""
        table = encoded.values.reshape(-1, self.width)
        kept = table[:, 0] < limit
        before = np.concatenate([[0], np.cumsum(kept)])
        return Ragged(table[kept].reshape(-1), before[encoded.offsets // self.width] * self.width)


@columns.register("phrases")
class PhrasesColumn(DictionaryColumn):
    """The phrases of a dictionary that are in a text.

    Example:
        >>> column = PhrasesColumn(Phrases([("city", "New York")]))
        >>> column.encode(["in new york", ""])[0].reshape(-1, 3).tolist()
        [[1.0, 1.0, 1.0], [2.0, 1.0, 1.0]]
    """

    kind = "phrases"
    shares = True
    dictionary: Phrases

    @override
    def check_beside(self, role: str, columns: Mapping[str, Column]) -> None:
        super().check_beside(role, columns)
        if self.name != (text := columns[self.text].name):
            raise UserError(
                f"The phrases must be those of the text in '{text}', but are looked for in "
                f"'{self.name}': set dictionary.column={text}."
            )


@columns.register("given_kinds")
class GivenKindsColumn(DictionaryColumn):
    """The kinds of words that a column has as JSON.

    Example:
        >>> column = GivenKindsColumn(GivenKinds(["drink", "song"], column="found"))
        >>> cell = '[{"tokenIdx": 1, "features": {"drink": 0.5, "song": 0.25}}]'
        >>> column.encode(["", cell])[1].reshape(-1, 3).tolist()
        [[1.0, 1.0, 0.5], [1.0, 2.0, 0.25]]
    """

    kind = "given_kinds"
    dictionary: GivenKinds
