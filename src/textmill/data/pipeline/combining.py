"""Verbs over several pipelines: zip, concat, round_robin, sample."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from typing_extensions import override

from textmill.data.pipeline.node import Cursor, PipelineNode, State
from textmill.errors import DataError

T = TypeVar("T")
DRAWS = 1024  # random numbers made at once; part of what a seed means, so it stays


@dataclass(eq=False)
class Concat(Cursor[T]):
    """The items of the first source, then those of the second, and so on; base of the others.

    Attributes:
        nodes: The sources.
        epoch: Which epoch of them.
        saved: A state of this cursor to go on from; None: the epoch's beginning.
    """

    nodes: Sequence[PipelineNode[Any]]
    epoch: int
    saved: State | None

    def __post_init__(self) -> None:
        count = len(self.nodes)
        fresh: State = {"sources": [None] * count, "done": [False] * count, "turn": 0}
        state = fresh if self.saved is None else self.saved
        opened = zip(self.nodes, state["sources"], strict=True)
        self.sources: list[Cursor[Any]] = [node.open(self.epoch, each) for node, each in opened]
        self.done: list[bool] = [*state["done"]]
        self.turn: int = state["turn"]
        """How many items were given, or whose turn it is."""
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

    def choose(self) -> int:
        """Which source, one that has not ended, is asked for the next item."""
        return self.done.index(False)

    def after(self) -> None:
        """An item was given."""
        self.turn += 1


@dataclass(eq=False, kw_only=True)
class Zip(Concat[tuple[Any, ...]]):
    """Tuples of one item of each."""

    shortest: bool

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
        if len(ended) < len(self.sources) and not self.shortest:
            more = next(i for i in range(len(self.sources)) if i not in ended)
            raise DataError(
                f"zip: pipeline {ended[0] + 1} ended after {self.turn} items, and pipeline "
                f"{more + 1} has more. Make them equally long, or zip with shortest=True."
            )
        raise StopIteration

    @override
    def place(self) -> str:
        return ", ".join(dict.fromkeys(p for p in (s.place() for s in self.sources) if p))


class RoundRobin(Concat[T]):
    """One item of each in turn, until all have ended."""

    @override
    def choose(self) -> int:
        while self.done[self.turn]:
            self.after()
        return self.turn

    @override
    def after(self) -> None:
        self.turn = (self.turn + 1) % len(self.sources)


@dataclass(eq=False, kw_only=True)
class Sample(Concat[T]):
    """Each item from a pipeline drawn by weight among those that have not ended.

    The draw of item number ``turn`` is a function of (seed, epoch, turn).
    """

    weights: Sequence[float]
    seed: int
    _page: int = -1

    @override
    def choose(self) -> int:
        page, at = divmod(self.turn, DRAWS)
        if page != self._page:
            key = (self.seed, self.epoch, page)
            self._page, self._draws = page, np.random.default_rng(key).random(DRAWS)
        left = np.cumsum(np.where(self.done, 0.0, self.weights))
        # The draw lies below the whole sum: the first sum above it is of a source with weight.
        return int(np.searchsorted(left, self._draws[at] * left[-1], side="right"))
