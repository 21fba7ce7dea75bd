"""Verbs that look at one item at a time: map, filter, take, skip, shard, repeat."""

from collections.abc import Callable
from typing import Any, TypeVar

from typing_extensions import override

from weft.data.pipeline.node import Follower, PipelineNode, State
from weft.errors import DataError

__all__ = ["Filter", "Map", "Repeat", "Shard", "Skip", "Take"]

T = TypeVar("T")
U = TypeVar("U")


class _Counting(Follower[T]):
    """A cursor that counts what it took from its source."""

    def __init__(self, source: PipelineNode[Any], epoch: int, state: State | None) -> None:
        super().__init__(source, epoch, state)
        self.count: int = 0 if state is None else state["count"]

    @override
    def state(self) -> State:
        return {"source": self.source.state(), "count": self.count}


class Map(_Counting[U]):
    """``function(item)`` of each item."""

    def __init__(
        self,
        source: PipelineNode[T],
        epoch: int,
        state: State | None,
        *,
        function: Callable[[T], U],
    ) -> None:
        super().__init__(source, epoch, state)
        self._function = function

    @override
    def __next__(self) -> U:
        item = next(self.source)
        self.count += 1
        try:
            return self._function(item)
        except Exception as error:
            raise _named("map", self._function, self, error) from error


class Filter(_Counting[T]):
    """The items of which ``function(item)`` is true."""

    def __init__(
        self,
        source: PipelineNode[T],
        epoch: int,
        state: State | None,
        *,
        function: Callable[[T], object],
    ) -> None:
        super().__init__(source, epoch, state)
        self._function = function

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


class Take(_Counting[T]):
    """The first ``n`` items of an epoch."""

    def __init__(self, source: PipelineNode[T], epoch: int, state: State | None, *, n: int) -> None:
        super().__init__(source, epoch, state)
        self._n = n

    @override
    def __next__(self) -> T:
        if self.count >= self._n:
            raise StopIteration
        item: T = next(self.source)
        self.count += 1
        return item


class Skip(_Counting[T]):
    """All items but the first ``n`` of an epoch."""

    def __init__(self, source: PipelineNode[T], epoch: int, state: State | None, *, n: int) -> None:
        super().__init__(source, epoch, state)
        self._n = n

    @override
    def __next__(self) -> T:
        while self.count < self._n:
            next(self.source)
            self.count += 1
        item: T = next(self.source)
        return item


class Shard(_Counting[T]):
    """Every ``shards``-th item, beginning with number ``index``."""

    def __init__(
        self, source: PipelineNode[T], epoch: int, state: State | None, *, index: int, shards: int
    ) -> None:
        super().__init__(source, epoch, state)
        self._index, self._shards = index, shards

    @override
    def __next__(self) -> T:
        while True:
            item: T = next(self.source)
            self.count += 1
            if (self.count - 1) % self._shards == self._index:
                return item


class Repeat(Follower[T]):
    """``n`` epochs of the source as one, or (None) all of them without end."""

    def __init__(
        self, source: PipelineNode[T], epoch: int, state: State | None, *, n: int | None
    ) -> None:
        self._node, self._n = source, n
        # Without end there is a second epoch only after a take: its orders are to be new ones.
        self._first = epoch * (n or 1 << 32)
        self._round = 0 if state is None else state["round"]
        self._empty = state is None or state["empty"]
        super().__init__(source, self._first + self._round, state)

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
        if self._n is not None and self._round + 1 >= self._n:
            raise StopIteration
        if self._empty and self._n is None:
            raise DataError("repeat: the source has no items, so repeating it would never end.")
        self._round, self._empty = self._round + 1, True
        self.source.close()
        self.source = self._node.open(self._first + self._round)

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
