"""Verbs that look at one item at a time: map and filter; take, skip and shard; repeat."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from typing_extensions import override

from textmill.data.pipeline.node import Follower, State
from textmill.errors import DataError

T = TypeVar("T")
_END = object()


class _Counting(Follower[T]):
    """A cursor that counts what it took from its source."""

    @override
    def __post_init__(self) -> None:
        super().__post_init__()
        self.count: int = 0 if self.saved is None else self.saved["count"]

    @override
    def state(self) -> State:
        return {"source": self.source.state(), "count": self.count}


@dataclass(eq=False, kw_only=True)
class Apply(_Counting[T]):
    """``function(item)`` of each item (map), or the items of which it is true (filter)."""

    function: Callable[[Any], Any]
    keeps: bool

    @override
    def __next__(self) -> T:
        while True:
            item = next(self.source)
            self.count += 1
            try:
                made: T = self.function(item)
            except Exception as error:
                raise self._named(error) from error
            if not self.keeps:
                return made
            if made:
                kept: T = item
                return kept

    def _named(self, error: Exception) -> DataError:
        verb = "filter" if self.keeps else "map"
        name = getattr(self.function, "__name__", type(self.function).__name__)
        place = self.place()
        return DataError(
            f"{verb}({name}): item {self.count}{f' ({place})' if place else ''}: "
            f"{type(error).__name__}: {error}"
        )


@dataclass(eq=False, kw_only=True)
class Slice(_Counting[T]):
    """Items by their numbers, as ``items[start:stop:step]`` has them: take, skip and shard."""

    start: int = 0
    stop: int | None = None
    step: int = 1

    @override
    def __next__(self) -> T:
        while self.stop is None or self.count < self.stop:
            item: T = next(self.source)
            number = self.count - self.start
            if number >= 0 and self.stop is None and self.step == 1:
                return item  # all from here on: nothing is to be counted
            self.count += 1
            if number >= 0 and number % self.step == 0:
                return item
        raise StopIteration


@dataclass(eq=False, kw_only=True)
class Repeat(Follower[T]):
    """``n`` epochs of the source as one, or (None) all of them without end."""

    n: int | None

    @override
    def __post_init__(self) -> None:
        self._round = 0 if self.saved is None else self.saved["round"]
        self._empty = self.saved is None or self.saved["empty"]
        # Without end there is a second epoch only after a take: its orders are to be new ones.
        self._first = self.epoch * (self.n or 1 << 32)
        self.epoch = self._first + self._round
        super().__post_init__()

    @override
    def __next__(self) -> T:
        while True:
            item: Any = next(self.source, _END)
            if item is not _END:
                self._empty = False
                kept: T = item
                return kept
            if self.n is not None and self._round + 1 >= self.n:
                raise StopIteration
            if self._empty and self.n is None:
                raise DataError("repeat: the source has no items, so repeating it would never end.")
            self._round, self._empty = self._round + 1, True
            self.source.close()
            self.source = self.node.open(self._first + self._round)

    @override
    def state(self) -> State:
        return {"source": self.source.state(), "round": self._round, "empty": self._empty}
