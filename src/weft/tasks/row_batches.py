"""Batches of encoded rows, and batches that the recipe made itself."""

import itertools
import logging
import random
from collections.abc import (
    Callable,
    Collection,
    Generator,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
    Sized,
)
from functools import cached_property
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import torch
from torch import Tensor
from typing_extensions import override

from weft.data.batches import EpochBatches
from weft.data.batching import Batching
from weft.errors import DataError
from weft.runtime.seeds import HostRandom, fold
from weft.tasks.task import Row, Task

__all__ = [
    "ReadyBatches",
    "RowBatches",
    "RowSource",
    "check_batch",
    "is_row",
    "look",
    "peek",
    "ready_batches",
    "rows_of",
]

LOG = logging.getLogger("weft")
Drawn = TypeVar("Drawn")

MOST_ROWS = 5_000_000
"""Most rows of data without a length: some 2 GB as dictionaries, and seconds to read."""


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
        rows: All rows of the data, by the same numbers; also those that are in no batch.
        details: What an evaluation on these batches says of rows that do not count in a value.
    """

    def __init__(
        self,
        batches: EpochBatches[Any],
        rows: Sequence[Row],
        *,
        details: Mapping[str, str] | None = None,
    ) -> None:
        self.batches, self.rows = batches, rows
        self.details = dict(details or {})

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
        return [{"row": i, **self.rows[i]} for i in batch.rows.tolist()]

    def state_dict(self) -> dict[str, Any]:
        """Epoch and position."""
        return self.batches.state_dict()

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to the place in ``state``."""
        self.batches.load_state_dict(dict(state))


class HostPlace(Mapping[str, Any]):
    """The state of the global generators as it is now, turned into plain data only when read.

    A place is taken before every batch and saved before few of them.
    """

    def __init__(self) -> None:
        self._raw = _raw_host()

    @cached_property
    def _plain(self) -> dict[str, Any]:
        now = _raw_host()
        _set_host(self._raw)
        try:
            return HostRandom().state_dict()
        finally:
            _set_host(now)

    @override
    def __getitem__(self, name: str) -> Any:
        return self._plain[name]

    @override
    def __iter__(self) -> Iterator[str]:
        return iter(self._plain)

    @override
    def __len__(self) -> int:
        return len(self._plain)


def _raw_host() -> tuple[Any, Any]:
    return random.getstate(), np.random.get_state(legacy=False)  # noqa: NPY002  # the global one


def _set_host(raw: tuple[Any, Any]) -> None:
    random.setstate(raw[0])
    np.random.set_state(raw[1])  # noqa: NPY002  # the global one


class ReadyBatches:
    """A recipe's own iterable of batches; each iteration of it is one epoch.

    An iterable with ``state_dict`` and ``load_state_dict`` is resumed exactly; any other is
    replayed: after a crash its batches are drawn again and thrown away up to the place. Of a list
    or a tuple the place is a number.

    Such code often shuffles and augments with global generators. Torch's is seeded for each batch
    by (seed, epoch, number of the batch), and is put back after it. Those of ``random`` and numpy
    are seeded at an epoch's start; their states before the next batch are part of the place, so a
    batch that was read ahead when a run was killed is drawn again as it was.

    Args:
        batches: The iterable.
        read: Reads a batch back as rows of text.
        seed: The run's seed.
    """

    def __init__(
        self,
        batches: Iterable[Any],
        read: Callable[[Any], list[dict[str, Any]]],
        *,
        seed: int = 0,
    ) -> None:
        self.source, self._read, self._seed = batches, read, seed
        # Giving the next of these runs no code that could draw; a place takes 40 microseconds.
        self._at_hand = type(batches) in (list, tuple)
        self.epoch, self.position = 0, 0
        self._skip = 0
        self._random = HostRandom()
        self._at_place: Mapping[str, Any] | None = None

    @property
    def replayed(self) -> bool:
        """Whether resuming draws the batches of the broken epoch again."""
        return not (self._at_hand or isinstance(self.source, Resumable))

    def __iter__(self) -> Iterator[Any]:
        for batch in self._rest():
            self.position += 1
            yield batch
        self.epoch, self.position = self.epoch + 1, 0

    def _rest(self) -> Iterator[Any]:
        """The batches of this epoch that are still to come."""
        at_place, self._at_place = self._at_place, None
        if self._at_hand:
            skip, self._skip = self._skip, 0
            yield from itertools.islice(self.source, skip, None)
            return
        if at_place is None:
            yield from self._drawn(self.epoch)
            return
        now = HostPlace()
        iterator = self._drawn(self.epoch, self.position - self._skip)
        for _ in itertools.islice(iterator, self._skip):
            pass
        self._random.load_state_dict(at_place)
        ahead = list(itertools.islice(iterator, 1))
        self._random.load_state_dict(now)
        yield from ahead
        yield from iterator

    def _drawn(self, epoch: int, first: int = 0) -> Iterator[Any]:
        """What the source gives in an epoch, from batch number ``first`` on."""
        seed = fold(self._seed, "data", epoch)
        random.seed(seed)
        np.random.seed(seed % 2**32)  # noqa: NPY002  # the global one
        iterator = _torch_seeded(seed, lambda: iter(self.source))
        for number in itertools.count(first):
            batch = _torch_seeded(fold(seed, number), lambda: next(iterator, _NOTHING))
            if batch is _NOTHING:
                return
            yield batch

    def examples(self, batch: Any) -> list[dict[str, Any]]:
        """The rows of a batch, read back from it."""
        return self._read(batch)

    def state_dict(self) -> dict[str, Any]:
        """Epoch, position, the global generators', and the iterable's own state if it has one."""
        state: dict[str, Any] = {"epoch": self.epoch, "position": self.position}
        if self.position and not self._at_hand:
            state["random"] = {"place": HostPlace()}
        if isinstance(self.source, Resumable):
            state["source"] = self.source.state_dict()
        return state

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to the place in ``state``; replays whole epochs of an iterable without a state."""
        self.epoch, self.position, self._skip = state["epoch"], state["position"], 0
        self._at_place = state.get("random", {}).get("place")
        if isinstance(self.source, Resumable):
            self.source.load_state_dict(state["source"])
            return
        if self._at_hand:
            self._skip = self.position
            return
        if self.epoch or self.position:
            LOG.info(
                "Drawing %d whole epochs and %d batches again: the %s does not know its place.",
                self.epoch,
                self.position,
                type(self.source).__name__,
            )
        now = HostPlace()
        for epoch in range(self.epoch):  # it may count its epochs, or go on from the last order
            for _batch in self._drawn(epoch):
                pass
        self._random.load_state_dict(now)
        self._skip = self.position


def _torch_seeded(seed: int, draw: Callable[[], Drawn]) -> Drawn:
    """What ``draw`` gives with torch's global generator seeded, which is then put back (5 us)."""
    before = torch.default_generator.get_state()
    torch.default_generator.manual_seed(seed)
    try:
        return draw()
    finally:
        torch.default_generator.set_state(before)


class SizedReadyBatches(ReadyBatches):
    """Ready batches of an iterable that knows how many it gives in an epoch."""

    def __len__(self) -> int:
        """Batches of an epoch."""
        return len(self.source)  # type: ignore[arg-type]


def ready_batches(
    batches: Iterable[Any], read: Callable[[Any], list[dict[str, Any]]], *, seed: int = 0
) -> ReadyBatches:
    """Ready batches, with a length where the iterable has one.

    Args:
        batches: The iterable; each iteration of it is one epoch.
        read: Reads a batch back as rows of text.
        seed: What the iterable draws from global generators is a function of it.

    Example:
        >>> len(ready_batches([1, 2], read=list))
        2
    """
    try:
        len(batches)  # type: ignore[arg-type]
    except (TypeError, NotImplementedError):  # a DataLoader has __len__, whatever it loads from
        return ReadyBatches(batches, read, seed=seed)
    return SizedReadyBatches(batches, read, seed=seed)


def is_row(item: Any, columns: Collection[str] = ()) -> bool:
    """Whether an item is a row, and not a ready batch that is a dictionary.

    A row has text in one of ``columns``. Other dictionaries are rows, if bad ones, where no value
    is a tensor, an array or a list.

    Example:
        >>> is_row({"source": "Go.", "tags": ["short"]}, ["source", "target"])
        True
        >>> is_row({"source": [[5, 3]], "name": "Go."}, ["source", "target"])
        False
    """
    if not isinstance(item, Mapping):
        return False
    if any(isinstance(item.get(name), str) for name in columns):
        return True
    return not any(isinstance(v, Sized) and not isinstance(v, str | bytes) for v in item.values())


def check_batch(task: Task, batch: Any, kind: type, *, train: bool) -> None:
    """Refuses, before step 1, a batch that only a recipe's own task could work with.

    Raises:
        DataError: It cannot be taken for one of ``kind``, and the task's step is the library's.
    """
    if hasattr(batch, "to") and not isinstance(batch, Tensor | Mapping):
        return
    step = "training_step" if train else "validation_step"
    methods = [getattr(type(task), name, task.batches) for name in (step, "logits")]
    if not all(method.__module__.startswith("weft.") for method in methods):
        return
    raise DataError(
        f"The data gives batches of type {type(batch).__name__}, but {type(task).__name__} takes "
        f"a {kind.__name__}. Make one of them, or override {step}. For rows, give dictionaries "
        f"that have the text of {' and '.join(map(repr, task.text.columns))}."
    )


def rows_of(data: Iterable[Row], *, train: bool) -> tuple[Sequence[Row], Batching]:
    """All rows of data, in memory, and how they become batches.

    Raises:
        DataError: The data has no length and gives more than ``MOST_ROWS`` rows.

    Example:
        >>> rows, batching = rows_of([{"source": "Go."}], train=True)
        >>> batching
        Batching(max_tokens=2048, batch_size=None, shuffle=True, seed_offset=0)
    """
    if isinstance(data, RowSource):
        return data.rows(), data.batching
    rows = list(data if isinstance(data, Sized) else itertools.islice(data, MOST_ROWS + 1))
    if len(rows) > MOST_ROWS and not isinstance(data, Sized):
        raise DataError(
            f"The data, a {type(data).__name__} without a length, gives more than {MOST_ROWS:,} "
            "rows; rows are all read before step 1. If it has no end, end an epoch with take(n), "
            "or yield ready batches, which are read one by one. If it is only long, read it by "
            "TextPairs, or give a list of its rows."
        )
    return rows, Batching(shuffle=train)


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
