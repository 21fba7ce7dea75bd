"""A column of slots: a tag for each word of a row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from typing_extensions import override

from weft.errors import DataError, UserError
from weft.text.cells import words_in
from weft.text.columns.column import DESCRIPTION, Column, columns
from weft.text.features.labels import UNSEEN
from weft.text.features.slots import Format, Slots
from weft.text.metadata import SavedTextError, settings_of
from weft.text.ragged import Ragged

__all__ = ["SlotsColumn"]


@columns.register("slots")
class SlotsColumn(Column):
    """Tags of slots in the order of the words: a text split at white space, or a list.

    Where cells have spans of characters, the text processor makes tags of them first, since they
    are those of another column.

    Args:
        slots: The slots there are, and their column.

    Example:
        >>> SlotsColumn(Slots(["time"])).encode(["O B-time I-time", ""])[0].tolist()
        [0, 1, 2]
    """

    kind = "slots"

    def __init__(self, slots: Slots) -> None:
        super().__init__(slots.column)
        self.slots = slots

    @property
    @override
    def pad(self) -> int:
        """No tag has this number."""
        return -1

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"slots": self.slots}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        known = {tag: number for number, tag in enumerate(self.slots)}
        rows: list[list[int]] = []
        for row, value in enumerate(values):
            tags = words_in(value, self.name, row)
            wrong = next((tag for tag in tags if tag not in known), None)
            if wrong is not None and not self.unseen:
                raise DataError(
                    f"Row {row}, column '{self.name}': {wrong!r:.80} is no tag of a slot. "
                    f"{self.slots.listed}"
                )
            rows.append([known.get(tag, UNSEEN) for tag in tags])
        return Ragged.from_lists(rows)

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        return {"name": self.name, "names": list(self.slots.names), "format": self.slots.format}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "SlotsColumn":
        path = folder / DESCRIPTION
        settings_of(path, settings, {"name": str, "names": list, "format": str})
        if settings["format"] not in ("tags", "spans"):
            raise SavedTextError(f"{path}: 'format' must be tags or spans.")
        names, format = map(str, settings["names"]), cast("Format", settings["format"])
        try:
            return cls(Slots(names, column=settings["name"], format=format))
        except UserError as error:
            raise SavedTextError(f"{path}: {error}") from None
