"""Verbs that hold several items, of which none is ever saved: shuffle, bucket, pack."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.data.pipeline.node import Follower, State
from textmill.errors import DataError

T = TypeVar("T")
Ids = NDArray[np.int64]
NONE: Ids = np.zeros(0, np.int64)


@dataclass(eq=False, kw_only=True)
class Shuffle(Follower[T]):
    """Each window of items in an order that is a function of (seed, epoch, window's number).

    State: that of the source at the window's start, and how much of the window was given.
    """

    window: int
    seed: int

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        state = self.saved
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
            if len(found) == self.window:
                break
        key = (self.seed, self.epoch, self._windows)
        order = np.random.default_rng(key).permutation(len(found))
        self._items, self._given = [found[i] for i in order], 0

    @override
    def state(self) -> State:
        return {"source": self._start, "window": self._windows, "given": self._given}

    @override
    def place(self) -> str:
        return self._place


@dataclass(eq=False, kw_only=True)
class Bucket(Follower[list[T]]):
    """Lists of ``n`` items; the last may be shorter, or is dropped."""

    n: int
    drop_remainder: bool
    _place: str = ""

    @override
    def __next__(self) -> list[T]:
        items: list[T] = []
        for item in self.source:
            if not items:
                self._place = self.source.place()
            items.append(item)
            if len(items) == self.n:
                return items
        if not items or self.drop_remainder:
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


@dataclass(eq=False, kw_only=True)
class BucketByLength(Follower[list[T]]):
    """Lists of items of like length: ``sizes`` are pairs of (items in a list, longest length).

    The state is the source's before the oldest item held, and which items since were given.

    On resume all since then are read again, and those that were given are left out.
    """

    sizes: Sequence[tuple[int, int]]
    length: Callable[[T], int]
    skip_long: bool

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        state = self.saved
        self._number = 0 if state is None else state["number"]  # of the next item of the source
        self._buckets: list[list[tuple[int, T]]] = [[] for _ in self.sizes]
        self._held: dict[int, State] = {}  # number of an item held -> the source before it
        self._over = False
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
        length = self.length(item)
        for index, (size, longest_length) in enumerate(self.sizes):
            if length <= longest_length:
                self._held[number] = before
                self._buckets[index].append((number, item))
                return index if len(self._buckets[index]) == size else None
        if self.skip_long:
            return None
        place = self.source.place()
        raise DataError(
            f"bucket_by_length: item {number + 1}{f' ({place})' if place else ''} has length "
            f"{length}, and the longest bucket takes {self.sizes[-1][1]}. Add a bucket, or "
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


@dataclass(eq=False, kw_only=True)
class Pack(Follower[Ids]):
    """Blocks of ``length`` ids, cut from all sequences joined; the last may be shorter.

    State: the source's before the sequence that was cut last, and how much of it was given.
    """

    length: int
    drop_remainder: bool

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        state = self.saved
        self._number = 0 if state is None else state["number"]  # of the next sequence
        self._before: State = self.source.state()
        self._ids, self._used, self._place = NONE, 0, ""
        if state is not None and state["used"]:
            self._read()
            self._used = state["used"]

    @override
    def __next__(self) -> Ids:
        parts: list[Ids] = []
        missing = self.length
        while missing:
            if self._used == len(self._ids):
                try:
                    self._read()
                except StopIteration:
                    break
            part = self._ids[self._used : self._used + missing]
            if len(part) and not parts:
                self._place = self.source.place()
            self._used += len(part)
            missing -= len(part)
            parts.append(part)
        block = np.concatenate([NONE, *parts])  # a copy: what is cut from is another block's too
        if not len(block) or (missing and self.drop_remainder):
            raise StopIteration
        return block

    def _read(self) -> None:
        """Takes the next sequence."""
        self._before = self.source.state()
        item = next(self.source)
        self._number += 1
        try:
            found = np.asarray(item)
        except (ValueError, TypeError):  # lists of several lengths
            found = np.array(None)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            place = self.source.place()
            raise DataError(
                f"pack: wanted sequences of ids, but item {self._number}"
                f"{f' ({place})' if place else ''} is {item!r:.80}. Encode with map before."
            )
        self._ids, self._used = found.astype(np.int64), 0

    @override
    def state(self) -> State:
        if self._used == len(self._ids):
            return {"source": self.source.state(), "number": self._number, "used": 0}
        return {"source": self._before, "number": self._number - 1, "used": self._used}

    @override
    def place(self) -> str:
        return f"from {self._place}" if self._place else ""
