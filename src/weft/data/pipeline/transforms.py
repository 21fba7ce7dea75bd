"""Verbs that look at one item at a time: map, filter, take, skip, shard, repeat."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

from typing_extensions import override

from weft.data.pipeline.node import Cursor, Follower, Node, State
from weft.errors import DataError

__all__ = ["Filter", "Map", "Repeat", "Shard", "Skip", "Take"]

T = TypeVar("T")
U = TypeVar("U")


class _Counting(Follower[T]):
    """A cursor that counts what it took from its source."""

    def __init__(self, source: Node[Any], epoch: int, state: State | None) -> None:
        self.source = source.open(epoch, None if state is None else state["source"])
        self.count: int = 0 if state is None else state["count"]

    @override
    def state(self) -> State:
        return {"source": self.source.state(), "count": self.count}


@dataclass(frozen=True)
class Map(Node[U], Generic[T, U]):
    """``function(item)`` of each item."""

    source: Node[T]
    function: Callable[[T], U]

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[U]:
        return _MapCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.map"


class _MapCursor(_Counting[U]):
    def __init__(self, node: Map[Any, U], epoch: int, state: State | None) -> None:
        super().__init__(node.source, epoch, state)
        self._function = node.function

    @override
    def __next__(self) -> U:
        item = next(self.source)
        self.count += 1
        try:
            return self._function(item)
        except Exception as error:
            raise _named("map", self._function, self, error) from error


@dataclass(frozen=True)
class Filter(Node[T]):
    """The items of which ``function(item)`` is true."""

    source: Node[T]
    function: Callable[[T], object]

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[T]:
        return _FilterCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.filter"


class _FilterCursor(_Counting[T]):
    def __init__(self, node: Filter[T], epoch: int, state: State | None) -> None:
        super().__init__(node.source, epoch, state)
        self._function = node.function

    @override
    def __next__(self) -> T:
        while True:
            item: T = next(self.source)
            self.count += 1
            try:
                keep = self._function(item)
            except Exception as error:
                raise _named("filter", self._function, self, error) from error
            if keep:
                return item


@dataclass(frozen=True)
class Take(Node[T]):
    """The first ``n`` items of an epoch."""

    source: Node[T]
    n: int

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[T]:
        return _TakeCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.take({self.n})"


class _TakeCursor(_Counting[T]):
    def __init__(self, node: Take[T], epoch: int, state: State | None) -> None:
        super().__init__(node.source, epoch, state)
        self._n = node.n

    @override
    def __next__(self) -> T:
        if self.count >= self._n:
            raise StopIteration
        item: T = next(self.source)
        self.count += 1
        return item


@dataclass(frozen=True)
class Skip(Node[T]):
    """All items but the first ``n`` of an epoch."""

    source: Node[T]
    n: int

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[T]:
        return _SkipCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.skip({self.n})"


class _SkipCursor(_Counting[T]):
    def __init__(self, node: Skip[T], epoch: int, state: State | None) -> None:
        super().__init__(node.source, epoch, state)
        self._n = node.n

    @override
    def __next__(self) -> T:
        while self.count < self._n:
            next(self.source)
            self.count += 1
        return next(self.source)  # type: ignore[no-any-return]  # the source is of T


@dataclass(frozen=True)
class Shard(Node[T]):
    """Every ``count``-th item, beginning with number ``index``."""

    source: Node[T]
    index: int
    count: int

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[T]:
        return _ShardCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.shard({self.index}, {self.count})"


class _ShardCursor(_Counting[T]):
    def __init__(self, node: Shard[T], epoch: int, state: State | None) -> None:
        super().__init__(node.source, epoch, state)
        self._index, self._shards = node.index, node.count

    @override
    def __next__(self) -> T:
        while True:
            item: T = next(self.source)
            self.count += 1
            if (self.count - 1) % self._shards == self._index:
                return item


@dataclass(frozen=True)
class Repeat(Node[T]):
    """``n`` epochs of the source as one, or (None) all of them without end."""

    source: Node[T]
    n: int | None

    @override
    def open(self, epoch: int, state: State | None = None) -> Cursor[T]:
        return _RepeatCursor(self, epoch, state)

    @override
    def signature(self) -> str:
        return f"{self.source.signature()}.repeat({self.n})"


class _RepeatCursor(Follower[T]):
    def __init__(self, node: Repeat[T], epoch: int, state: State | None) -> None:
        self._node = node
        # Without end there is a second epoch only after a take: its orders are to be new ones.
        self._first = epoch * (node.n or 1 << 32)
        self._round = 0 if state is None else state["round"]
        self._empty = state is None or state["empty"]
        self.source = node.source.open(
            self._first + self._round, None if state is None else state["source"]
        )

    @override
    def __next__(self) -> T:
        while True:
            try:
                item: T = next(self.source)
            except StopIteration:
                self._next_round()
            else:
                self._empty = False
                return item

    def _next_round(self) -> None:
        if self._node.n is not None and self._round + 1 >= self._node.n:
            raise StopIteration
        if self._empty and self._node.n is None:
            raise DataError("repeat: the source has no items, so repeating it would never end.")
        self._round, self._empty = self._round + 1, True
        self.source.close()
        self.source = self._node.source.open(self._first + self._round)

    @override
    def state(self) -> State:
        return {"source": self.source.state(), "round": self._round, "empty": self._empty}


def _named(verb: str, function: object, cursor: _Counting[Any], error: Exception) -> DataError:
    name = getattr(function, "__name__", type(function).__name__)
    place = cursor.place()
    return DataError(
        f"{verb}({name}): item {cursor.count}{f' ({place})' if place else ''}: "
        f"{type(error).__name__}: {error}"
    )
