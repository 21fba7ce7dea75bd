"""Columns of labels: one a row, or several."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

import numpy as np
from typing_extensions import override

from weft.errors import DataError, UserError
from weft.text.columns.column import DESCRIPTION, Column, columns
from weft.text.features.labels import Labels, one_label, split_labels
from weft.text.metadata import SavedTextError, settings_of
from weft.text.ragged import Ragged

__all__ = ["LabelColumn", "LabelsColumn", "SeveralLabels", "label_column"]

_KINDS: dict[str, type | tuple[type, ...]] = {"name": str, "names": list}


@columns.register("label")
class LabelColumn(Column):
    """One label a row, as its number.

    Args:
        labels: The labels there are, and their column.

    Example:
        >>> LabelColumn(Labels(["ham", "spam"])).encode(["spam"]).values.tolist()
        [1]
    """

    kind = "label"
    single = True

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels.column)
        self.labels = labels

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"labels": self.labels}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        names = [one_label(value, column=self.name, row=row) for row, value in enumerate(values)]
        numbers = self.labels.numbers(names, unseen=self.unseen)
        return Ragged(numbers, np.arange(len(numbers) + 1, dtype=np.int64))

    @override
    def unseen_in(self, value: Any) -> list[str]:
        name = one_label(value, column=self.name, row=0)
        return [] if self.labels.has(name) else [name]

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        return {"name": self.name, "names": list(self.labels)}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "LabelColumn":
        settings_of(folder / DESCRIPTION, settings, _KINDS)
        return cls(_labels(folder, settings["names"], column=settings["name"]))


class SeveralLabels(Column):
    """Base of columns whose rows have several labels each.

    Args:
        labels: The labels there are, their column, and what stands between two.
    """

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels.column)
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
        """The labels of one cell, which need not be known ones."""
        return split_labels(value, self.labels.separator, column=self.name, row=row)

    def numbers(self, value: Any, row: int) -> list[int]:
        """The labels of one cell by their numbers, in its order.

        Raises:
            DataError: One is unknown; names its row, the column, and its place in the cell.
        """
        names = self.names(value, row=row)
        known = (name.strip() if self.unseen else self.labels.has(name) for name in names)
        wrong = next((at for at, is_known in enumerate(known) if not is_known), None)
        if wrong is not None:
            raise DataError(
                f"Row {row}, column '{self.name}': {names[wrong]!r:.80} at {wrong} is no label. "
                f"{self.labels.listed}"
            )
        found: list[int] = self.labels.numbers(names, unseen=self.unseen).tolist()
        return found

    @override
    def unseen_in(self, value: Any) -> list[str]:
        return [name for name in self.names(value) if not self.labels.has(name)]

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        separator = self.labels.separator
        return {"name": self.name, "names": list(self.labels), "separator": separator}

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        settings_of(folder / DESCRIPTION, settings, {**_KINDS, "separator": (str, type(None))})
        own = {"column": settings["name"], "separator": settings["separator"] or None}
        return cls(_labels(folder, settings["names"], multiple=True, **own))


@columns.register("labels")
class LabelsColumn(SeveralLabels):
    """Any number of labels a row, as their numbers in rising order, each once.

    Example:
        >>> topics = Labels(["sport", "news", "local"], multiple=True, separator=",")
        >>> [row.tolist() for row in LabelsColumn(topics).encode(["local, sport", "", ["news"]])]
        [[0, 2], [], [1]]
    """

    kind = "labels"
    sorted = False

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        found = [self.numbers(value, row) for row, value in enumerate(values)]
        return Ragged.from_lists([sorted({*numbers}) for numbers in found])


def _labels(folder: Path, names: list[str], **settings: Any) -> Labels:
    try:
        return Labels(names, **settings)
    except UserError as error:
        raise SavedTextError(f"{folder / DESCRIPTION}: {error}") from None


def label_column(labels: Labels) -> LabelColumn | LabelsColumn:
    """The column that labels are in.

    Example:
        >>> label_column(Labels(["ham", "spam"])).single
        True
    """
    return LabelsColumn(labels) if labels.multiple else LabelColumn(labels)
