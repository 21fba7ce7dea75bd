"""Rows at hand with their batching: for rows that a script makes itself."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from weft.config.read_once import refuse_read_once
from weft.data.batching import Batching, MaxTokens

__all__ = ["BatchedRows"]

Row = Mapping[str, str]


class BatchedRows:
    """Rows that say how they become batches; a plain list gets the defaults of ``Batching``.

    Args:
        rows: All rows, in memory.
        max_tokens: Most cells of one step: padded source plus padded target. Not used where
            ``batch_size`` is set. ``auto``: what fits and pays, found when a run starts.
        batch_size: Rows of one step.
        shuffle: Whether the batches of an epoch come in random order; else from short to long.

    Raises:
        DataError: The rows can be read only once.
        UserError: ``max_tokens`` or ``batch_size`` is below 1, or neither is set.

    Example:
        >>> rows = [{"source": "Hi.", "target": "Salut."}, {"source": "Run!", "target": "Cours !"}]
        >>> data = BatchedRows(rows, batch_size=1)
        >>> len(data), data.batching.batch_size
        (2, 1)
    """

    def __init__(
        self,
        rows: Sequence[Row],
        *,
        max_tokens: MaxTokens = Batching.max_tokens,
        batch_size: int | None = Batching.batch_size,
        shuffle: bool = Batching.shuffle,
    ) -> None:
        refuse_read_once(rows, "BatchedRows' rows")
        self._rows = rows
        self.batching = Batching(max_tokens=max_tokens, batch_size=batch_size, shuffle=shuffle)

    def take_max_tokens(self, number: int) -> None:
        """Takes the number that was found for ``auto``."""
        self.batching = replace(self.batching, max_tokens=number)

    def rows(self) -> Sequence[Row]:
        """All rows."""
        return self._rows

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Row]:
        return iter(self._rows)
