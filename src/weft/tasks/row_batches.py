"""Batches of encoded rows, and batches that the recipe made itself."""

import itertools
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol, runtime_checkable

from weft.data.batches import EpochBatches
from weft.data.batching import Batching
from weft.errors import DataError
from weft.runtime.seeds import HostRandom
from weft.tasks.task import Row

__all__ = ["ReadyBatches", "RowBatches", "RowSource", "look", "peek"]


@runtime_checkable
class RowSource(Protocol):
    """Data that has all its rows at hand and says how they become batches."""

    @property
    def batching(self) -> Batching:
        """How rows become batches."""
        ...

    def rows(self) -> Sequence[Row]:
        """All rows."""
        ...


@runtime_checkable
class Resumable(Protocol):
    """An iterable that knows its place."""

    def __iter__(self) -> Iterator[Any]: ...

    def state_dict(self) -> Mapping[str, Any]:
        """The place."""
        ...

    def load_state_dict(self, state: Any, /) -> None:
        """Goes to a place."""
        ...


class RowBatches:
    """Batches gathered from encoded rows; their order is a pure function of (seed, epoch).

    Args:
        batches: Batches of row numbers turned into tensors, with exact state.
        rows: The rows that were encoded, by the same numbers.
        numbers: Each row's number in the data, where some of it was left out; None: its own.
    """

    def __init__(
        self,
        batches: EpochBatches[Any],
        rows: Sequence[Row],
        *,
        numbers: Sequence[int] | None = None,
    ) -> None:
        self.batches, self.rows, self.numbers = batches, rows, numbers

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
        """The rows of a batch with their numbers, from 0, in the data."""
        indices, numbers = batch.rows.tolist(), self.numbers
        return [{"row": i if numbers is None else int(numbers[i]), **self.rows[i]} for i in indices]

    def state_dict(self) -> dict[str, Any]:
        """Epoch and position."""
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to the place in ``state``."""
        self.batches.load_state_dict(dict(state))


class ReadyBatches:
    """A recipe's own iterable of batches; each iteration of it is one epoch.

    An iterable with ``state_dict`` and ``load_state_dict`` is resumed exactly; any other is
    replayed: after a crash its batches are drawn again and thrown away up to the place.

    Such code often shuffles and augments with the global generators of ``random`` and numpy. Their
    states at the epoch's start and before the next batch are part of the place, so a batch that was
    read ahead when a run was killed is drawn again as it was.

    Args:
        batches: The iterable.
        read: Reads a batch back as rows of text.
    """

    def __init__(self, batches: Iterable[Any], read: Callable[[Any], list[dict[str, Any]]]) -> None:
        self.source, self._read = batches, read
        self.epoch, self.position = 0, 0
        self._skip = 0
        self._random = HostRandom()
        self._at_start: dict[str, Any] | None = None
        self._at_place: dict[str, Any] | None = None

    @property
    def replayed(self) -> bool:
        """Whether resuming draws the batches of the broken epoch again."""
        return not isinstance(self.source, Resumable)

    def __iter__(self) -> Iterator[Any]:
        for batch in self._rest():
            self.position += 1
            yield batch
        self.epoch, self.position, self._at_start = self.epoch + 1, 0, None

    def _rest(self) -> Iterator[Any]:
        """The batches of this epoch that are still to come."""
        at_place, self._at_place = self._at_place, None
        if at_place is None:
            self._at_start = self._random.state_dict()
            yield from self.source
            return
        now = self._random.state_dict()
        self._random.load_state_dict(self._at_start or at_place)
        iterator = iter(self.source)
        for _ in itertools.islice(iterator, self._skip):
            pass
        self._random.load_state_dict(at_place)
        ahead = list(itertools.islice(iterator, 1))
        self._random.load_state_dict(now)
        yield from ahead
        yield from iterator

    def examples(self, batch: Any) -> list[dict[str, Any]]:
        """The rows of a batch, read back from it."""
        return self._read(batch)

    def state_dict(self) -> dict[str, Any]:
        """Epoch, position, the global generators', and the iterable's own state if it has one."""
        state: dict[str, Any] = {"epoch": self.epoch, "position": self.position}
        if self.position:
            state["random"] = {"start": self._at_start, "place": self._random.state_dict()}
        if isinstance(self.source, Resumable):
            state["source"] = self.source.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to the place in ``state``; replays whole epochs of an iterable without a state."""
        self.epoch, self.position, self._skip = state["epoch"], state["position"], 0
        random = state.get("random", {})
        self._at_start, self._at_place = random.get("start"), random.get("place")
        if isinstance(self.source, Resumable):
            self.source.load_state_dict(state["source"])
            return
        for _ in range(self.epoch):  # a generator behind it may shuffle by its own count of epochs
            for _batch in self.source:
                pass
        self._skip = self.position


def look(data: Iterable[Any]) -> tuple[Any, Iterable[Any]]:
    """The first item of an iterable, and the iterable as it was before.

    Raises:
        DataError: There is no item, or the iterable can be read only once.

    Example:
        >>> look([{"source": "Go."}, {"source": "Run!"}])[0]
        {'source': 'Go.'}
    """
    if isinstance(data, Iterator):
        raise DataError(
            f"The data is a {type(data).__name__}, which can be read only once, but training reads "
            "it in every epoch. Give a list, or an object whose __iter__ starts anew."
        )
    state = data.state_dict() if isinstance(data, Resumable) else None
    items = iter(data)
    first = next(items, _NOTHING)
    if isinstance(items, Generator):
        items.close()  # what it has opened is let go now
    if isinstance(data, Resumable):
        data.load_state_dict(state)
    if first is _NOTHING:
        raise DataError(f"The data, a {type(data).__name__}, is empty: wanted rows or batches.")
    return first, data


def peek(data: Iterable[Any]) -> Any:
    """The first item of an iterable; see :func:`look`."""
    return look(data)[0]


_NOTHING = object()
