"""Verbs that hold several items: shuffle, bucket, bucket_by_length. No buffer is ever saved."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from weft.data.pipeline.node import Cursor, Follower, Node, State
from weft.errors import DataError

__all__ = ["Bucket", "BucketByLength", "Shuffle", "longest"]

T = TypeVar("T")


@dataclass(frozen=True)
class Shuffle(Node[T]):
    """Each window of items in an order that is a function of (seed, epoch, window's number)."""

    source: Node[T]
    window: int
    seed: int

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[T]:
        return _ShuffleCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.shuffle({self.window}, seed={self.seed})"


class _ShuffleCursor(Follower[T]):
    """State: that of the source at the window's start, and how much of the window was given."""

    def __init__(self, node: Shuffle[T], epoch: int, state: State | None) -> None:
        self._node, self._epoch = node, epoch
        self.source = node.source.open(epoch, None if state is None else state["source"])
        self._windows = 0 if state is None else state["window"]
        self._start: State = self.source.state()
        self._items: list[tuple[T, str]] = []
        self._given, self._place = 0, ""
        if state is not None and state["given"]:
            self._fill()
            self._given = state["given"]

    @override
    def __next__(self) -> T:
        if self._given == len(self._items):
            if self._items:
                self._windows += 1
            self._fill()
            if not self._items:
                raise StopIteration
        item, self._place = self._items[self._given]
        self._given += 1
        return item

    def _fill(self) -> None:
        self._start = self.source.state()
        found: list[tuple[T, str]] = []
        for item in self.source:
            found.append((item, self.source.place()))
            if len(found) == self._node.window:
                break
        key = (self._node.seed, self._epoch, self._windows)
        order = np.random.default_rng(key).permutation(len(found))
        self._items, self._given = [found[i] for i in order], 0

    @override
    def state(self) -> State:
        return {"source": self._start, "window": self._windows, "given": self._given}

    @override
    def place(self) -> str:
        return self._place


@dataclass(frozen=True)
class Bucket(Node[list[T]]):
    """Lists of ``n`` items; the last may be shorter, or is dropped."""

    source: Node[T]
    n: int
    drop_remainder: bool = False

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[list[T]]:
        return _BucketCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        drop = ", drop_remainder" if self.drop_remainder else ""
        return f"{self.source.signature()}.bucket({self.n}{drop})"


class _BucketCursor(Follower[list[T]]):
    def __init__(self, node: Bucket[T], epoch: int, state: State | None) -> None:
        self._node = node
        self.source = node.source.open(epoch, None if state is None else state["source"])
        self._place = ""

    @override
    def __next__(self) -> list[T]:
        items: list[T] = []
        for item in self.source:
            if not items:
                self._place = self.source.place()
            items.append(item)
            if len(items) == self._node.n:
                return items
        if not items or self._node.drop_remainder:
            raise StopIteration
        return items

    @override
    def state(self) -> State:
        return {"source": self.source.state()}

    @override
    def place(self) -> str:
        return f"from {self._place}" if self._place else ""


def longest(item: Any) -> int:
    """The length of a sequence; of a tuple or dict of sequences, that of the longest.

    >>> longest([5, 6, 7]), longest(([5], [6, 7]))
    (3, 2)
    """
    if isinstance(item, tuple):
        return max(map(len, item))
    if isinstance(item, dict):
        return max(map(len, item.values()))
    return len(item)


@dataclass(frozen=True)
class BucketByLength(Node[list[T]]):
    """Lists of items of like length: ``sizes`` are pairs of (items in a list, longest length)."""

    source: Node[T]
    sizes: tuple[tuple[int, int], ...]
    length: Callable[[T], int]
    skip_long: bool = False

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[list[T]]:
        return _ByLengthCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.bucket_by_length({list(self.sizes)})"


class _ByLengthCursor(Follower[list[T]]):
    """The state is the source's before the oldest item held, and which items since were given.

    On resume all since then are read again, and those that were given are left out.
    """

    def __init__(self, node: BucketByLength[T], epoch: int, state: State | None) -> None:
        self._node = node
        self.source = node.source.open(epoch, None if state is None else state["source"])
        self._number = 0 if state is None else state["number"]  # of the next item of the source
        self._buckets: list[list[tuple[int, T]]] = [[] for _ in node.sizes]
        self._held: dict[int, State] = {}  # number of an item held -> the source before it
        self._place, self._over = "", False
        if state is not None:
            given = set(state["given"])
            for _ in range(state["read"]):
                self._take(keep=self._number not in given)

    @override
    def __next__(self) -> list[T]:
        while not self._over:
            try:
                full = self._take()
            except StopIteration:
                self._over = True
                break
            if full is not None:
                return self._give(full)
        for index, bucket in enumerate(self._buckets):
            if bucket:
                return self._give(index)
        raise StopIteration

    def _take(self, *, keep: bool = True) -> int | None:
        """Reads one item into its bucket; gives the bucket's index when it is full."""
        before = self.source.state()
        item: T = next(self.source)
        number, self._number = self._number, self._number + 1
        if not keep:
            return None
        length = self._node.length(item)
        for index, (size, longest_length) in enumerate(self._node.sizes):
            if length <= longest_length:
                self._held[number] = before
                self._buckets[index].append((number, item))
                return index if len(self._buckets[index]) == size else None
        if self._node.skip_long:
            return None
        place = self.source.place()
        raise DataError(
            f"bucket_by_length: item {number + 1}{f' ({place})' if place else ''} has length "
            f"{length}, and the longest bucket takes {self._node.sizes[-1][1]}. Add a bucket, or "
            "leave such items out with skip_long=True."
        )

    def _give(self, index: int) -> list[T]:
        bucket, self._buckets[index] = self._buckets[index], []
        for number, _ in bucket:
            del self._held[number]
        return [item for _, item in bucket]

    @override
    def state(self) -> State:
        if not self._held:
            return {"source": self.source.state(), "number": self._number, "read": 0, "given": []}
        oldest = next(iter(self._held))  # items come in by number, so the first is the oldest
        numbers = range(oldest, self._number)
        return {
            "source": self._held[oldest],
            "number": oldest,
            "read": len(numbers),
            "given": [number for number in numbers if number not in self._held],
        }

    @override
    def place(self) -> str:
        return ""


def as_sizes(sizes: Sequence[tuple[int, int]]) -> tuple[tuple[int, int], ...]:
    """The pairs of (items, longest length), shortest first."""
    return tuple(sorted(((int(n), int(length)) for n, length in sizes), key=lambda pair: pair[1]))
