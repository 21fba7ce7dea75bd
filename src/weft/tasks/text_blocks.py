"""What tasks on blocks of a text make of data: its rows, and how many blocks a step reads."""

from collections.abc import Iterable, Sequence
from typing import Any

from weft.data.batching import Batching
from weft.errors import DataError, UserError
from weft.tasks.row_batches import is_row, look, rows_of
from weft.tasks.task import Row

__all__ = ["blocks_of", "rows_with_text"]


def rows_with_text(
    data: Iterable[Any], column: str, *, train: bool
) -> tuple[Sequence[Row], Batching]:
    """All rows of data, and how they become batches.

    Raises:
        DataError: It gives something else than rows with a text.

    Example:
        >>> rows_with_text([{"text": "to be"}], "text", train=True)[0]
        [{'text': 'to be'}]
    """
    first, data = look(data)
    if not is_row(first, (column,)):
        raise DataError(
            f"Language modeling wants rows with the text '{column}', found "
            f"{type(first).__name__}. Give rows: weft makes the blocks."
        )
    return rows_of(data, train=train)


def blocks_of(batching: Batching, length: int) -> int:
    """Blocks of ``length`` tokens that a step reads.

    Raises:
        UserError: There is no size of a batch.

    Example:
        >>> blocks_of(Batching(max_tokens=1024), 128)
        8
    """
    if batching.batch_size is not None:
        return batching.batch_size
    if not isinstance(batching.max_tokens, int):
        raise UserError(
            "A language model's batches are of one size: set batch_size, the number of blocks, "
            "instead of max_tokens=auto."
        )
    return max(1, batching.max_tokens // length)
