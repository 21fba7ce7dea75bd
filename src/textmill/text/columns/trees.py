"""The column of trees over a sentence's words, by a tag for each word."""

from typing import Any

from typing_extensions import override

from textmill.text.cells import unlisted
from textmill.text.columns.column import columns
from textmill.text.columns.labels import TagsColumn
from textmill.text.features.tree_tags import TreeTags, read_cell


@columns.register("trees")
class TreesColumn(TagsColumn):
    """Trees of intents and slots, written in brackets, as the numbers of their words' tags.

    Example:
        >>> column = TreesColumn(TreeTags(["[IN:CALL", "[SL:PERSON", "O"]))
        >>> column.encode(["[IN:CALL call [SL:PERSON my mom ] ]"])[0].tolist()
        [0, 1, 2]
    """

    kind = "trees"
    labels: TreeTags

    def __init__(self, labels: TreeTags) -> None:
        super().__init__(labels)

    @override
    def names(self, value: Any, *, row: int = 0) -> list[str]:
        return self.parts(value, row=row)[1]

    def parts(self, value: Any, *, row: int = 0) -> tuple[list[str], list[str]]:
        """The words of the tree in one cell, and a tag for each.

        Raises:
            DataError: It is no tree; names the row and the column.
        """
        return read_cell(unlisted(value), column=self.name, row=row)
