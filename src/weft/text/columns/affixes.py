"""A column of the beginnings, endings and shapes of words, beside their ids."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from weft.errors import UserError
from weft.text.affixes import Affixes
from weft.text.cells import words_in
from weft.text.columns.column import DESCRIPTION, Column, columns
from weft.text.columns.words import table_of_words
from weft.text.description import SavedTextError, settings_of
from weft.text.ragged import Ragged

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
        known = self.affixes.known
        return {
            "name": self.name,
            "prefixes": [str(length) for length in self.affixes.prefixes],
            "suffixes": [str(length) for length in self.affixes.suffixes],
            "known": [f"{place} {affix}" for place, names in enumerate(known) for affix in names],
        }

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "AffixesColumn":
        path = folder / DESCRIPTION
        settings_of(
            path, settings, {"name": str, "prefixes": list, "suffixes": list, "known": list}
        )
        try:
            sizes = {name: [int(n) for n in settings[name]] for name in ("prefixes", "suffixes")}
            places = range(len(sizes["prefixes"]) + len(sizes["suffixes"]) + 1)
            known: dict[str, list[str]] = {str(place): [] for place in places}
            for place, _, affix in (entry.partition(" ") for entry in settings["known"]):
                known[place].append(affix)
            return cls(Affixes([*known.values()], **sizes, column=settings["name"]))
        except (UserError, ValueError) as error:
            raise SavedTextError(f"{path}: {error}") from None
        except KeyError as error:
            raise SavedTextError(f"{path}: 'known' has an affix of the place {error}.") from None
