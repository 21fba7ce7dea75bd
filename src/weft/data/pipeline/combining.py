"""Verbs over several pipelines: zip, concat, round_robin, sample."""

from abc import abstractmethod
from collections.abc import Sequence
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from weft.data.pipeline.node import Cursor, PipelineNode, State
from weft.errors import DataError

__all__ = ["Concat", "RoundRobin", "Sample", "Zip"]

T = TypeVar("T")
DRAWS = 1024  # random numbers made at once; part of what a seed means, so it stays


class _Several(Cursor[T]):
    """Opens all sources; ``done`` are those that have ended."""

    def __init__(
        self, sources: Sequence[PipelineNode[Any]], epoch: int, state: State | None
    ) -> None:
        states = [None] * len(sources) if state is None else state["sources"]
        self.sources: list[Cursor[Any]] = [
            source.open(epoch, each) for source, each in zip(sources, states, strict=True)
        ]
        self.done = [False] * len(sources) if state is None else list(state["done"])
        self.turn: int = 0 if state is None else state["turn"]
        self.last = self.sources[0]

    @override
    def state(self) -> State:
        states = [source.state() for source in self.sources]
        return {"sources": states, "done": list(self.done), "turn": self.turn}

    @override
    def place(self) -> str:
        return self.last.place()

    @override
    def close(self) -> None:
        for source in self.sources:
            source.close()

    @override
    def __next__(self) -> T:
        while not all(self.done):
            index = self.choose()
            self.last = self.sources[index]
            try:
                item: T = next(self.last)
            except StopIteration:
                self.done[index] = True
            else:
                self.after()
                return item
        raise StopIteration

    @abstractmethod
    def choose(self) -> int:
        """Which source, one that has not ended, is asked for the next item."""

    def after(self) -> None:
        """An item was given."""
        self.turn += 1


class Zip(_Several[tuple[Any, ...]]):
    """Tuples of one item of each."""

    def __init__(
        self,
        sources: Sequence[PipelineNode[Any]],
        epoch: int,
        state: State | None,
        *,
        shortest: bool,
    ) -> None:
        super().__init__(sources, epoch, state)
        self._shortest = shortest

    @override
    def __next__(self) -> tuple[Any, ...]:
        if all(self.done):
            raise StopIteration
        items: list[Any] = []
        ended: list[int] = []
        for index, source in enumerate(self.sources):
            try:
                items.append(next(source))
            except StopIteration:
                ended.append(index)
        if not ended:
            self.turn += 1
            return tuple(items)
        self.done = [True] * len(self.sources)
        if len(ended) < len(self.sources) and not self._shortest:
            more = next(i for i in range(len(self.sources)) if i not in ended)
            raise DataError(
                f"zip: pipeline {ended[0] + 1} ended after {self.turn} items, and pipeline "
                f"{more + 1} has more. Make them equally long, or zip with shortest=True."
            )
        raise StopIteration

    @override
    def choose(self) -> int:
        return 0

    @override
    def place(self) -> str:
        return ", ".join(dict.fromkeys(p for p in (s.place() for s in self.sources) if p))


class Concat(_Several[T]):
    """The items of the first, then those of the second, and so on."""

    @override
    def choose(self) -> int:
        return self.done.index(False)


class RoundRobin(_Several[T]):
    """One item of each in turn, until all have ended."""

    @override
    def choose(self) -> int:
        while self.done[self.turn]:
            self.after()
        return self.turn

    @override
    def after(self) -> None:
        self.turn = (self.turn + 1) % len(self.sources)


class Sample(_Several[T]):
    """Each item from a pipeline drawn by weight among those that have not ended.

    The draw of item number ``turn`` is a function of (seed, epoch, turn).
    """

    def __init__(
        self,
        sources: Sequence[PipelineNode[Any]],
        epoch: int,
        state: State | None,
        *,
        weights: Sequence[float],
        seed: int,
    ) -> None:
        super().__init__(sources, epoch, state)
        self._weights, self._seed, self._epoch = np.array(weights), seed, epoch
        self._page, self._draws = -1, np.empty(0)

    @override
    def choose(self) -> int:
        page, at = divmod(self.turn, DRAWS)
        if page != self._page:
            key = (self._seed, self._epoch, page)
            self._page, self._draws = page, np.random.default_rng(key).random(DRAWS)
        left = np.cumsum(np.where(self.done, 0.0, self._weights))
        # The draw lies below the whole sum: the first sum above it is of a source with weight.
        return int(np.searchsorted(left, self._draws[at] * left[-1], side="right"))
