"""A column of tags: a label for each word of a row."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from typing_extensions import override

from weft.errors import DataError, UserError
from weft.text.columns.column import DESCRIPTION, Column, columns
from weft.text.description import SavedTextError, settings_of
from weft.text.labels import Labels, split_labels
from weft.text.ragged import Ragged

__all__ = ["TagsColumn"]


@columns.register("tags")
class TagsColumn(Column):
    """Tags in the order of the words, one for each: a text split at white space, or a list.

    Args:
        labels: The tags there are, their column, and what stands between two.

    Raises:
        UserError: The labels are those of whole rows.

    Example:
        >>> tags = TagsColumn(Labels(["O", "B"], column="tags", multiple=True))
        >>> tags.encode(["O B O"])[0].tolist()
        [0, 1, 0]
    """

    kind = "tags"

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels.column)
        if not labels.multiple:
            raise UserError(
                f"Each word has a label of its own, but the labels of '{labels.column}' are one a "
                "row: set labels.multiple=true."
            )
        self.labels = labels

    @property
    @override
    def pad(self) -> int:
        """No label has this number."""
        return -1

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"labels": self.labels}

    def names(self, value: Any, *, row: int = 0) -> list[str]:
        """The tags of one cell, which need not be known ones."""
        return split_labels(value, self.labels.separator, column=self.name, row=row)

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        known = {name: number for number, name in enumerate(self.labels.names)}
        rows: list[list[int]] = []
        for row, value in enumerate(values):
            tags = self.names(value, row=row)
            try:
                rows.append([known[tag] for tag in tags])
            except KeyError:
                at = next(place for place, tag in enumerate(tags) if tag not in known)
                raise DataError(
                    f"Row {row}, column '{self.name}': {tags[at]!r:.80} at {at} is no label. "
                    f"{self.labels.listed}"
                ) from None
        return Ragged.from_lists(rows)

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        separator = self.labels.separator
        return {"name": self.name, "names": list(self.labels), "separator": separator}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "TagsColumn":
        settings_of(
            folder / DESCRIPTION,
            settings,
            {"name": str, "names": list, "separator": (str, type(None))},
        )
        own = {"column": settings["name"], "separator": settings["separator"] or None}
        try:
            return cls(Labels(settings["names"], multiple=True, **own))
        except UserError as error:
            raise SavedTextError(f"{folder / DESCRIPTION}: {error}") from None
