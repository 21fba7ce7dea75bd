"""Columns of labels, by their numbers: one a row, several, one a word, tags of slots or trees."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any

import numpy as np
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.cells import unlisted, words_in
from textmill.text.columns.column import Column, columns
from textmill.text.features.labels import UNSEEN, Labels, one_label, split_labels
from textmill.text.features.slots import Slots
from textmill.text.features.tree_actions import TreeActions
from textmill.text.features.tree_tags import TreeTags, read_cell
from textmill.text.ragged import Ragged


class NamedLabels(Column):
    """Base of columns of labels.

    Args:
        labels: The labels there are, their column, and what stands between two.
    """

    optional: bool = False
    """Whether a row may have an empty cell: one label is then encoded as ``UNSEEN``."""

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels.column, labels=labels)
        self.labels = labels

    @abstractmethod
    def names(self, value: Any, *, row: int = 0) -> list[str]:
        """The labels of one cell, which need not be known ones."""

    @override
    def unseen_in(self, value: Any) -> list[str]:
        return [name for name in self.names(value) if not self.labels.has(name)]


@columns.register("label")
class LabelColumn(NamedLabels):
    """One label a row, as its number."""

    kind = "label"
    single = True

    @override
    def names(self, value: Any, *, row: int = 0) -> list[str]:
        return [one_label(value, column=self.name, row=row)]

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        return [self.labels[int(number)] for number in encoded]

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        names = [name for row, value in enumerate(values) for name in self.names(value, row=row)]
        absent = [row for row, name in enumerate(names) if self.optional and name == ""]
        for row in absent:
            names[row] = self.labels[0]
        numbers = self.labels.numbers(names, unseen=self.unseen)
        numbers[absent] = UNSEEN
        return Ragged(numbers, np.arange(len(numbers) + 1, dtype=np.int64))


class SeveralLabels(NamedLabels):
    """Base of columns whose rows have several labels each."""

    pad = -1
    """No label has this number."""

    @override
    def names(self, value: Any, *, row: int = 0) -> list[str]:
        return split_labels(value, self.labels.separator, column=self.name, row=row)

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        return [[self.labels[number] for number in row.tolist() if number >= 0] for row in encoded]

    def numbers(self, value: Any, row: int) -> list[int]:
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


@columns.register("labels")
class LabelsColumn(SeveralLabels):
    """Any number of labels a row, as their numbers in rising order, each once."""

    kind = "labels"
    sorted = False

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        found = [self.numbers(value, row) for row, value in enumerate(values)]
        return Ragged.from_lists([sorted({*numbers}) for numbers in found])


@columns.register("tags")
class TagsColumn(SeveralLabels):
    """Tags in the order of the words, one for each: a text split at white space, or a list."""

    kind = "tags"

    def __init__(self, labels: Labels) -> None:
        super().__init__(labels)
        if not labels.multiple:
            raise UserError(
                f"Each word has a label of its own, but the labels of '{labels.column}' are one a "
                "row: set labels.multiple=true."
            )

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        return Ragged.from_lists([self.numbers(value, row) for row, value in enumerate(values)])


@columns.register("slots")
class SlotsColumn(Column):
    """Tags of slots in the order of the words: a text split at white space, or a list.

    Where cells have spans of characters, the text processor makes tags of them first, since they
    are those of another column.
    """

    kind = "slots"
    pad = -1
    """No tag has this number."""

    def __init__(self, slots: Slots) -> None:
        super().__init__(slots.column, slots=slots)
        self.slots = slots

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        tags = [[self.slots[number] for number in row.tolist() if number >= 0] for row in encoded]
        return [self.slots.cell(*pair) for pair in zip(tags, texts, strict=True)]

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


def label_column(labels: Labels) -> LabelColumn | LabelsColumn:
    return LabelsColumn(labels) if labels.multiple else LabelColumn(labels)


@columns.register("trees")
class TreesColumn(TagsColumn):
    """Trees of intents and slots, written in brackets, as the numbers of their words' tags."""

    kind = "trees"
    labels: TreeTags

    def __init__(self, labels: TreeTags) -> None:
        super().__init__(labels)

    @override
    def names(self, value: Any, *, row: int = 0) -> list[str]:
        return self.labels.of_tags(self.parts(value, row)[1])

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        pairs = zip(texts, super().cells(encoded, texts), strict=True)
        return [self.labels.tree(text.split(), names) for text, names in pairs]

    def parts(self, value: Any, row: int = 0) -> tuple[list[str], list[str]]:
        """The words of a tree, and a tag for each."""
        return read_cell(unlisted(value), column=self.name, row=row)

    def written(self, value: Any) -> str:
        """A tree as answers are written: white space around brackets is no part of it."""
        words, tags = self.parts(value)
        return self.labels.tree(words, self.labels.of_tags(tags))


@columns.register("tree_actions")
class TreeActionsColumn(TreesColumn):
    """Trees of intents and slots, written in brackets, as the numbers of their actions."""

    kind = "tree_actions"
    labels: TreeActions

    def __init__(self, labels: TreeActions) -> None:
        super().__init__(labels)
