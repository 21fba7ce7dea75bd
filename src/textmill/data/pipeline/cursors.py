"""A `PipelineNode` is a chain of verbs, a `Cursor` one epoch of it.

A verb is a generator that reads the cursors of its sources. A node never changes: it can be opened
any number of times, and gives the same items in an epoch each time. So a number of items is a
position, and to go on from it those before are made again.
"""

import itertools
import queue
import threading
import weakref
from collections import deque
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
DRAWS = 1024  # random numbers made at once; part of what a seed means, so it stays
WAIT = 0.1  # seconds until a thread that nobody reads from looks whether it should stop


class Cursor:
    """One epoch of a verb under way.

    Attributes:
        sources: The cursors that the verb reads.
        where: Gives the place of the last item: ``file:line``, or an empty string.
    """

    def __init__(
        self,
        verb: Callable[["Cursor"], Iterator[Any]],
        nodes: Sequence["PipelineNode[Any]"],
        epoch: int,
    ) -> None:
        self.epoch = epoch
        self.sources: list[Cursor] = [node.open(epoch) for node in nodes]
        self.where: Callable[[], str] = self.sources[0].place if self.sources else str
        self._items = verb(self)

    @property
    def source(self) -> "Cursor":
        return self.sources[0]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._items)

    def place(self) -> str:
        """Where the last item given comes from (``file:line``), or an empty string."""
        return self.where()

    def close(self) -> None:
        """Lets go of files and threads, when the epoch is left or over; twice is harmless."""
        if isinstance(self._items, Generator):
            self._items.close()
        for source in self.sources:
            source.close()


@dataclass(frozen=True)
class PipelineNode(Generic[T_co]):
    """One verb and, through its sources, the whole chain before it.

    Attributes:
        signature: The chain of verbs and what decides their positions, without functions and paths.
        open: Starts an epoch, by its number.
    """

    signature: str
    open: Callable[[int], Any]


class DataPipeline(Generic[T]):
    """An iterable of which one iteration is one epoch, and the next iteration the next epoch.

    An iteration that was left in the middle is gone on with by the next one. The state is plain
    JSON; a pipeline of the same build that loads it gives exactly the items that the first would
    have given, in this epoch and all that follow.

    Attributes:
        epoch: The epoch under way, from 0.
    """

    def __init__(self, node: PipelineNode[T]) -> None:
        self.node = node
        self.epoch = self._given = 0
        self._cursor: Any = None

    def __iter__(self) -> Iterator[T]:
        if self._cursor is None:
            self._cursor = self._begun()
        cursor = self._cursor
        while cursor is self._cursor:  # another iteration may end the epoch, or a state be loaded
            try:
                item: T = next(cursor)
            except StopIteration:
                self._go_to(self.epoch + 1)
                return
            self._given += 1
            yield item

    def _begun(self) -> Any:
        """The epoch, after the items that were given."""
        cursor = self.node.open(self.epoch)
        before = deque(enumerate(itertools.islice(cursor, self._given), start=1), maxlen=1)
        if sum(number for number, _ in before) < self._given:
            raise DataError(
                f"{self._given} items of the epoch were given before, and it has fewer now. Start "
                "anew, or put the old data back."
            )
        return cursor

    def reset(self) -> None:
        """Goes back to the start of epoch 0."""
        self._go_to(0)

    def state_dict(self) -> dict[str, Any]:
        """Position after the last item given, as JSON: the chain's signature, epoch and items."""
        return {"pipeline": self.node.signature, "epoch": self.epoch, "items": self._given}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the pipeline stood that gave ``state``."""
        mine = self.node.signature
        if state["pipeline"] != mine:
            raise DataError(
                f"The state is of another pipeline: wanted one of {mine}, "
                f"found one of {state['pipeline']}."
            )
        self._go_to(state["epoch"], state["items"])

    def _go_to(self, epoch: int, given: int = 0) -> None:
        if self._cursor is not None:
            self._cursor.close()
        self._cursor, self.epoch, self._given = None, epoch, given


def at_place(cursor: Cursor) -> str:
    """The place of an item in an error."""
    return f" ({place})" if (place := cursor.place()) else ""


# -- one item at a time


def apply(c: Cursor, function: Callable[[Any], Any], *, keeps: bool) -> Iterator[Any]:
    """``function(item)`` of each item (map), or the items of which it is true (filter)."""
    for number, item in enumerate(c.source, start=1):
        try:
            made = function(item)
        except Exception as error:
            name = getattr(function, "__name__", type(function).__name__)
            raise DataError(
                f"{'filter' if keeps else 'map'}({name}): item {number}{at_place(c)}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not keeps or made:
            yield item if keeps else made


def part(c: Cursor, start: int, stop: int | None, step: int) -> Iterator[Any]:
    """Items by their numbers, as ``items[start:stop:step]`` has them: take, skip and shard."""
    return itertools.islice(c.source, start, stop, step)


def repeat(c: Cursor, node: "PipelineNode[Any]", n: int | None) -> Iterator[Any]:
    """``n`` epochs of a node as one, or (None) all of them without end."""
    # Without end there is a second epoch only after a take: its orders are to be new ones.
    first = c.epoch * (n or 1 << 32)
    for epoch in itertools.count(first) if n is None else range(first, first + n):
        empty, c.sources = True, [node.open(epoch)]
        c.where = c.source.place
        for item in c.source:
            empty = False
            yield item
        c.source.close()
        if empty and n is None:
            raise DataError("repeat: the source has no items, so repeating it would never end.")


# -- several items at once


def shuffle(c: Cursor, window: int, seed: int) -> Iterator[Any]:
    """Each window of items in an order that is a function of (seed, epoch, window's number)."""
    place = ""
    c.where = lambda: place
    for number in itertools.count():
        found = [(item, c.source.place()) for item in itertools.islice(c.source, window)]
        if not found:
            return
        order = np.random.default_rng((seed, c.epoch, number)).permutation(len(found))
        for i in order.tolist():
            item, place = found[i]
            yield item


def bucket(c: Cursor, n: int, *, drop_remainder: bool) -> Iterator[list[Any]]:
    """Lists of ``n`` items; the last may be shorter, or is dropped."""
    place = ""
    c.where = lambda: f"from {place}" if place else ""
    while True:
        items = list[Any]()
        for item in itertools.islice(c.source, n):
            place = place if items else c.source.place()
            items.append(item)
        if not items or (drop_remainder and len(items) < n):
            return
        yield items


def longest(item: Any) -> int:
    """The length of a sequence; of a tuple or dict of sequences, that of the longest."""
    parts = item.values() if isinstance(item, dict) else item
    return max(map(len, parts)) if isinstance(item, tuple | dict) else len(item)


def bucket_by_length(
    c: Cursor, sizes: Sequence[tuple[int, int]], length: Callable[[Any], int], *, skip_long: bool
) -> Iterator[list[Any]]:
    """Lists of items of like length: ``sizes`` are pairs of (items in a list, longest length)."""
    c.where = str
    buckets = [list[Any]() for _ in sizes]
    for number, item in enumerate(c.source, start=1):
        size = length(item)
        for bucket, (most, longest_length) in zip(buckets, sizes, strict=True):
            if size <= longest_length:
                bucket.append(item)
                if len(bucket) == most:
                    yield [*bucket]
                    bucket.clear()
                break
        else:
            if not skip_long:
                raise DataError(
                    f"bucket_by_length: item {number}{at_place(c.source)} has length {size}, and "
                    f"the longest bucket takes {sizes[-1][1]}. Add a bucket, or leave such items "
                    "out with skip_long=True."
                )
    yield from filter(None, buckets)


def pack(c: Cursor, length: int, *, drop_remainder: bool) -> Iterator[NDArray[np.int64]]:
    """Blocks of ``length`` ids, cut from all sequences joined; the last may be shorter."""
    place, parts, missing = "", list[NDArray[np.int64]](), length
    c.where = lambda: f"from {place}" if place else ""
    for number, item in enumerate(c.source, start=1):
        try:
            found = np.asarray(item)
        except (ValueError, TypeError):  # lists of several lengths
            found = np.array(None)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise DataError(
                f"pack: wanted sequences of ids, but item {number}{at_place(c.source)} is "
                f"{item!r:.80}. Encode with map before."
            )
        ids = found.astype(np.int64)
        while len(ids):
            place = place if parts else c.source.place()
            piece, ids = ids[:missing], ids[missing:]
            parts.append(piece)
            missing -= len(piece)
            if not missing:
                yield np.concatenate(parts)  # a copy: what is cut from is another block's too
                parts, missing = [], length
    if parts and not drop_remainder:
        yield np.concatenate(parts)


# -- several sources


def in_order(c: Cursor) -> Iterator[Any]:
    """The items of the first source, then those of the second, and so on."""
    for source in c.sources:
        c.where = source.place
        yield from source


def in_turn(c: Cursor) -> Iterator[Any]:
    """One item of each source in turn that has not ended."""
    left = [*c.sources]
    while left:
        for source in [*left]:
            c.where = source.place
            try:
                item = next(source)
            except StopIteration:
                left.remove(source)
                continue
            yield item


def zipped(c: Cursor, *, shortest: bool) -> Iterator[tuple[Any, ...]]:
    """Tuples of one item of each."""
    c.where = lambda: ", ".join(dict.fromkeys(p for p in (s.place() for s in c.sources) if p))
    for number in itertools.count():
        items, ended = list[Any](), list[int]()
        for index, source in enumerate(c.sources):
            try:
                items.append(next(source))
            except StopIteration:
                ended.append(index)
        if not ended:
            yield tuple(items)
            continue
        if len(ended) < len(c.sources) and not shortest:
            more = next(i for i in range(len(c.sources)) if i not in ended)
            raise DataError(
                f"zip: pipeline {ended[0] + 1} ended after {number} items, and pipeline "
                f"{more + 1} has more. Make them equally long, or zip with shortest=True."
            )
        return


def sample(c: Cursor, weights: Sequence[float], seed: int) -> Iterator[Any]:
    """Sources drawn by weight: the draw of an item is a function of (seed, epoch, its number)."""
    left, number, draws = np.array(weights), 0, np.zeros(0)
    while left.any():
        page, at = divmod(number, DRAWS)
        if at == 0:
            draws = np.random.default_rng((seed, c.epoch, page)).random(DRAWS)
        sums = np.cumsum(left)
        # The draw lies below the whole sum: the first sum above it is of a source with weight.
        index = int(np.searchsorted(sums, draws[at] * sums[-1], side="right"))
        c.where = c.sources[index].place
        try:
            item = next(c.sources[index])
        except StopIteration:
            left[index] = 0.0
            continue
        number += 1
        yield item


# -- ahead


class Prefetch(Iterator[Any]):
    """The items of the source, up to ``n`` of them made ahead by a thread."""

    def __init__(self, node: PipelineNode[Any], epoch: int, *, n: int) -> None:
        source = node.open(epoch)
        self._place = ""
        self._ready: queue.Queue[_Made] = queue.Queue(n)
        self._end: BaseException | None = None
        stop = threading.Event()
        work = threading.Thread(
            target=_work, args=(source, self._ready, stop), name="textmill-prefetch", daemon=True
        )
        # The thread holds the queue and not this cursor: a forgotten cursor ends its thread.
        self._close = weakref.finalize(self, _stop, stop, work, source.close)
        work.start()

    @override
    def __next__(self) -> Any:
        if self._end is None:
            item, self._place, error = self._ready.get()
            if error is None:
                return item
            self._end = error
            self.close()
        raise self._end

    def place(self) -> str:
        return self._place

    def close(self) -> None:
        self._close()
        if self._end is None:
            self._end = StopIteration()


_Made = tuple[Any, str, BaseException | None]
"""An item and its place, or what ended the source."""


def _work(source: Any, ready: "queue.Queue[_Made]", stop: threading.Event) -> None:
    error: BaseException | None = None
    while error is None and not stop.is_set():
        item = None
        try:
            item = next(source)
        except BaseException as end:  # raised again where items are taken
            error = end
        made = (item, source.place(), error)
        while not stop.is_set():
            try:
                ready.put(made, timeout=WAIT)
            except queue.Full:
                continue
            break


def _stop(stop: threading.Event, work: threading.Thread, close: Callable[[], None]) -> None:
    stop.set()
    if work is not threading.current_thread():
        work.join()
    close()
