"""A column of the beginnings, endings and shapes of words, beside their ids."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from weft.errors import UserError
from weft.text.affixes import Affixes
from weft.text.columns.column import DESCRIPTION, Column, columns
from weft.text.columns.words import table_of_words
from weft.text.description import SavedTextError, settings_of
from weft.text.ragged import Ragged
from weft.text.words_in import words_in

__all__ = ["AffixesColumn"]


@columns.register("affixes")
class AffixesColumn(Column):
    """The affixes of each word, in as many places for every word; it shares the words' column.

    Args:
        affixes: The known ones, and the column.

    Example:
        >>> affixes = Affixes([["s", "g"], ["x"]], prefixes=[], suffixes=[1])
        >>> AffixesColumn(affixes).encode(["dogs go"])[0].reshape(2, 2).tolist()
        [[3, 2], [1, 2]]
    """

    kind = "affixes"
    shares = True

    def __init__(self, affixes: Affixes) -> None:
        super().__init__(affixes.column)
        self.affixes = affixes

    @property
    @override
    def width(self) -> int:
        return self.affixes.length

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"affixes": self.affixes}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [words_in(value, self.name, row) for row, value in enumerate(values)]
        return table_of_words(rows, self.affixes.table, width=self.width)

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        return {
            "name": self.name,
            "known": [list(names) for names in self.affixes.known],
            "prefixes": list(self.affixes.prefixes),
            "suffixes": list(self.affixes.suffixes),
        }

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "AffixesColumn":
        path = folder / DESCRIPTION
        settings_of(
            path, settings, {"name": str, "known": list, "prefixes": list, "suffixes": list}
        )
        lengths = [*settings["prefixes"], *settings["suffixes"]]
        if not all(type(length) is int for length in lengths):
            raise SavedTextError(f"{path}: 'prefixes' and 'suffixes' must be numbers.")
        if not all(isinstance(names, list) for names in settings["known"]):
            raise SavedTextError(f"{path}: 'known' must be a list of lists.")
        known = [[str(name) for name in names] for names in settings["known"]]
        sizes = {key: settings[key] for key in ("prefixes", "suffixes")}
        try:
            return cls(Affixes(known, **sizes, column=settings["name"]))
        except UserError as error:
            raise SavedTextError(f"{path}: {error}") from None
