"""Batches of encoded rows, and batches that the recipe made itself."""

import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

from weft.data.batches import EpochBatches
from weft.tasks.task import Row

__all__ = ["ReadyBatches", "RowBatches", "peek"]


class RowBatches:
    """Batches gathered from encoded rows; their order is a pure function of (seed, epoch).

    Args:
        batches: Batches of row numbers turned into tensors, with exact state.
        rows: The rows that were encoded, by the same numbers.
    """

    def __init__(self, batches: EpochBatches[Any], rows: Sequence[Row]) -> None:
        self.batches, self.rows = batches, rows

    @property
    def epoch(self) -> int:
        """The epoch that the next iteration is part of, from 0."""
        return self.batches.epoch

    def __iter__(self) -> Iterator[Any]:
        return iter(self.batches)

    def __len__(self) -> int:
        """Batches of the current epoch."""
        return len(self.batches)

    def examples(self, batch: Any) -> list[Mapping[str, Any]]:
        """The rows of a batch with their numbers."""
        return [{"row": int(number), **self.rows[int(number)]} for number in batch.rows]

    def state_dict(self) -> dict[str, Any]:
        """Epoch and position."""
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to the place in ``state``."""
        self.batches.load_state_dict(dict(state))


class ReadyBatches:
    """A recipe's own iterable of batches; each iteration of it is one epoch.

    An iterable with ``state_dict`` and ``load_state_dict`` is resumed exactly; any other is replayed: after a
    crash its batches are drawn again and thrown away up to the place.

    Args:
        batches: The iterable.
        read: Reads a batch back as rows of text.
    """

    def __init__(self, batches: Iterable[Any], read: Callable[[Any], list[dict[str, Any]]]) -> None:
        self.source, self.examples = batches, read
        self.epoch, self.position = 0, 0
        self._skip = 0

    @property
    def replayed(self) -> bool:
        """Whether resuming draws the batches of the broken epoch again."""
        return not (hasattr(self.source, "state_dict") and hasattr(self.source, "load_state_dict"))

    def __iter__(self) -> Iterator[Any]:
        skip, self._skip = self._skip, 0
        for batch in itertools.islice(iter(self.source), skip, None):
            self.position += 1
            yield batch
        self.epoch, self.position = self.epoch + 1, 0

    def state_dict(self) -> dict[str, Any]:
        """Epoch, position, and the iterable's own state where it has one."""
        state: dict[str, Any] = {"epoch": self.epoch, "position": self.position}
        if not self.replayed:
            state["source"] = self.source.state_dict()  # type: ignore[attr-defined]
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to the place in ``state``; replays whole epochs where the iterable has no state of its own."""
        self.epoch, self.position = state["epoch"], state["position"]
        if not self.replayed:
            self.source.load_state_dict(state["source"])  # type: ignore[attr-defined]
            return
        for _ in range(self.epoch):  # a generator behind it may shuffle by its own count of epochs
            for _batch in self.source:
                pass
        self._skip = self.position


def peek(data: Iterable[Any]) -> Any:
    """The first item of an iterable that can be iterated again; None if it has none."""
    return next(iter(data), None)
