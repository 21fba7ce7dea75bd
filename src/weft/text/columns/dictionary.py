"""Columns of what a dictionary knows of words: places, kinds, and weights."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from weft.errors import DataError, UserError
from weft.runtime.files import write_file
from weft.text.columns.column import DESCRIPTION, Column, columns
from weft.text.features.dictionaries import Dictionary, GivenKinds, Phrases
from weft.text.metadata import SavedTextError, read_bytes, settings_of
from weft.text.ragged import Ragged

__all__ = [
    "DictionaryColumn",
    "GivenKindsColumn",
    "PhrasesColumn",
    "dictionary_column",
]

PHRASES = "phrases.tsv"
LARGEST = 1 << 28
"""Bytes of saved phrases: some 10 million."""


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
        super().__init__(dictionary.column)
        self.dictionary, self.text = dictionary, text

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"dictionary": self.dictionary}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [self.dictionary.find(value, row) for row, value in enumerate(values)]
        table = np.array([finding for row in rows for finding in row], dtype=np.float32)
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        offsets = np.concatenate([[0], np.cumsum(counts * self.width)]).astype(np.int64)
        return Ragged(table.reshape(-1), offsets)

    @override
    def check(self, encoded: Mapping[str, Ragged], kinds: Mapping[str, Column]) -> None:
        """Refuses what is known of a word behind the last one of its row."""
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
        """Without what is known of words behind the limit."""
        table = encoded.values.reshape(-1, self.width)
        kept = table[:, 0] < limit
        before = np.concatenate([[0], np.cumsum(kept)])
        return Ragged(table[kept].reshape(-1), before[encoded.offsets // self.width] * self.width)

    @abstractmethod
    @override
    def save_files(self, folder: Path) -> dict[str, Any]: ...


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
    def save_files(self, folder: Path) -> dict[str, Any]:
        lines = (f"{kind}\t{phrase}\n" for kind, phrase in self.dictionary.pairs())
        write_file(folder / PHRASES, "".join(lines))
        case = "yes" if self.dictionary.lowercase else "no"
        return {"name": self.name, "text": self.text, "lowercase": case}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "PhrasesColumn":
        path = folder / DESCRIPTION
        settings_of(path, settings, {"name": str, "text": str, "lowercase": str})
        if (case := settings["lowercase"]) not in ("yes", "no"):
            raise SavedTextError(f"{path}: 'lowercase' must be yes or no.")
        try:
            lines = read_bytes(folder / PHRASES, largest=LARGEST).decode().split("\n")[:-1]
            pairs = [(kind, phrase) for kind, _, phrase in (line.partition("\t") for line in lines)]
            made = Phrases(pairs, column=settings["name"], lowercase=case == "yes")
        except (UnicodeDecodeError, UserError) as error:
            raise SavedTextError(
                f"{folder / PHRASES}: {error} Save the text processor again."
            ) from None
        return cls(made, text=settings["text"])


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

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        kinds = list(self.dictionary.kinds)
        return {"name": self.name, "text": self.text, "kinds": kinds}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "GivenKindsColumn":
        settings_of(folder / DESCRIPTION, settings, {"name": str, "text": str, "kinds": list})
        try:
            made = GivenKinds(settings["kinds"], column=settings["name"])
        except UserError as error:
            raise SavedTextError(f"{folder / DESCRIPTION}: {error}") from None
        return cls(made, text=settings["text"])


def dictionary_column(dictionary: Dictionary, *, column: str, text: str) -> DictionaryColumn:
    """The column of what a dictionary knows of the words of a text.

    Args:
        dictionary: The dictionary.
        column: The column of the text.
        text: Its role.

    Raises:
        UserError: The phrases are those of another column.

    Example:
        >>> phrases = Phrases([("city", "Ur")], column="said")
        >>> dictionary_column(phrases, column="text", text="text")
        Traceback (most recent call last):
        weft.errors.UserError: The phrases must be those of the text in 'text', but are looked for \
in 'said': set dictionary.column=text.
    """
    if not isinstance(dictionary, Phrases):
        return GivenKindsColumn(dictionary, text=text)
    if dictionary.column != column:
        raise UserError(
            f"The phrases must be those of the text in '{column}', but are looked for in "
            f"'{dictionary.column}': set dictionary.column={column}."
        )
    return PhrasesColumn(dictionary, text=text)
