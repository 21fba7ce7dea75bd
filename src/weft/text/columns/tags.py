"""A column of tags: a label for each word of a row."""

from collections.abc import Sequence
from typing import Any

from typing_extensions import override

from weft.errors import UserError
from weft.text.columns.column import columns
from weft.text.columns.label import SeveralLabels
from weft.text.labels import Labels
from weft.text.ragged import Ragged

__all__ = ["TagsColumn"]


@columns.register("tags")
class TagsColumn(SeveralLabels):
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
        super().__init__(labels)
        if not labels.multiple:
            raise UserError(
                f"Each word has a label of its own, but the labels of '{labels.column}' are one a "
                "row: set labels.multiple=true."
            )

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        return Ragged.from_lists([self.numbers(value, row) for row, value in enumerate(values)])
