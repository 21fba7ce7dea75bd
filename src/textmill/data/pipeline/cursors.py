"""A `PipelineNode` is a chain of verbs, a `Cursor` where one epoch of it stands.

A verb is a generator that reads the cursors of its sources. A node never changes: it can be opened
any number of times. A cursor's state is plain JSON and holds positions only, no items: what was
buffered is read again on resume.
"""

import copy
import queue
import threading
import weakref
from collections.abc import Callable, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)
State = dict[str, Any]  # JSON; nested by verb
NONE: NDArray[np.int64] = np.zeros(0, np.int64)
DRAWS = 1024  # random numbers made at once; part of what a seed means, so it stays
WAIT = 0.1  # seconds until a thread that nobody reads from looks whether it should stop


class Cursor:
    """One epoch of a verb under way, from its beginning or from what was ``saved`` of it.

    Attributes:
        sources: The cursors that the verb reads.
        own: Its own part of the state, which it changes before it gives an item.
        pinned: The state of its one source from which all that it holds can be read again; None:
            that which the source has now.
        where: Gives the place of the last item: ``file:line``, or an empty string.
    """

    def __init__(
        self,
        verb: Callable[["Cursor"], Iterator[Any]],
        nodes: Sequence["PipelineNode[Any]"],
        epoch: int,
        saved: State | None,
        fresh: State,
    ) -> None:
        self.nodes, self.epoch = nodes, epoch
        state = copy.deepcopy({"sources": [None] * len(nodes), **fresh} if saved is None else saved)
        opened = zip(nodes, state.pop("sources"), strict=True)
        self.sources: list[Cursor] = [node.open(epoch, each) for node, each in opened]
        self.own: State = state
        self.pinned: State | None = None
        self.where: Callable[[], str] = self.sources[0].place if self.sources else str
        self._items = verb(self)

    @property
    def source(self) -> "Cursor":
        return self.sources[0]

    def __iter__(self) -> Iterator[Any]:
        return self

    def __next__(self) -> Any:
        return next(self._items)

    def state(self) -> State:
        """Where it stands after the last item given, as JSON that later items do not change."""
        pinned = self.pinned
        sources = [each.state() for each in self.sources] if pinned is None else [pinned]
        return copy.deepcopy({"sources": sources, **self.own})

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
        open: Starts an epoch, by its number and None; or goes on from a state of this epoch.
    """

    signature: str
    open: Callable[[int, State | None], Any]


class DataPipeline(Generic[T]):
    """An iterable of which one iteration is one epoch, and the next iteration the next epoch.

    An iteration that was left in the middle is gone on with by the next one. The state is plain
    JSON of positions; a pipeline of the same build that loads it gives exactly the items that the
    first would have given, in this epoch and all that follow.

    Attributes:
        epoch: The epoch under way, from 0.
    """

    def __init__(self, node: PipelineNode[T]) -> None:
        self.node = node
        self.epoch = 0
        self._cursor: Any = None

    def __iter__(self) -> Iterator[T]:
        if self._cursor is None:
            self._cursor = self.node.open(self.epoch, None)
        cursor = self._cursor
        while cursor is self._cursor:  # another iteration may end the epoch, or a state be loaded
            try:
                item: T = next(cursor)
            except StopIteration:
                self._leave()
                self.epoch += 1
                return
            yield item

    def reset(self) -> None:
        """Goes back to the start of epoch 0."""
        self._leave()
        self.epoch = 0

    def state_dict(self) -> State:
        """Position after the last item given, as JSON: the chain's signature, epoch and cursor."""
        cursor = None if self._cursor is None else self._cursor.state()
        return {"pipeline": self.node.signature, "epoch": self.epoch, "cursor": cursor}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Goes to where the pipeline stood that gave ``state``."""
        mine = self.node.signature
        if state["pipeline"] != mine:
            raise DataError(
                f"The state is of another pipeline: wanted one of {mine}, "
                f"found one of {state['pipeline']}."
            )
        self._leave()
        self.epoch = state["epoch"]
        if state["cursor"] is not None:
            self._cursor = self.node.open(self.epoch, state["cursor"])

    def _leave(self) -> None:
        if self._cursor is not None:
            self._cursor.close()
        self._cursor = None


def at_place(cursor: Cursor) -> str:
    """The place of an item in an error."""
    return f" ({place})" if (place := cursor.place()) else ""


# -- one item at a time


def apply(c: Cursor, function: Callable[[Any], Any], *, keeps: bool) -> Iterator[Any]:
    """``function(item)`` of each item (map), or the items of which it is true (filter)."""
    for item in c.source:
        c.own["count"] += 1
        try:
            made = function(item)
        except Exception as error:
            name = getattr(function, "__name__", type(function).__name__)
            raise DataError(
                f"{'filter' if keeps else 'map'}({name}): item {c.own['count']}{at_place(c)}: "
                f"{type(error).__name__}: {error}"
            ) from error
        if not keeps or made:
            yield item if keeps else made


def part(c: Cursor, start: int, stop: int | None, step: int) -> Iterator[Any]:
    """Items by their numbers, as ``items[start:stop:step]`` has them: take, skip and shard."""
    while stop is None or c.own["count"] < stop:
        try:
            item = next(c.source)
        except StopIteration:
            return
        number, c.own["count"] = c.own["count"] - start, c.own["count"] + 1
        if number >= 0 and number % step == 0:
            yield item


def repeat(c: Cursor, n: int | None, first: int) -> Iterator[Any]:
    """``n`` epochs of the source as one, or (None) all of them without end."""
    while True:
        for item in c.source:
            c.own["empty"] = False
            yield item
        if n is not None and c.own["round"] + 1 >= n:
            return
        if c.own["empty"] and n is None:
            raise DataError("repeat: the source has no items, so repeating it would never end.")
        c.own = {"round": c.own["round"] + 1, "empty": True}
        c.source.close()
        c.sources = [c.nodes[0].open(first + c.own["round"], None)]
        c.where = c.source.place


# -- several items at once, of which none is ever saved


def shuffle(c: Cursor, window: int, seed: int) -> Iterator[Any]:
    """Each window of items in an order that is a function of (seed, epoch, window's number)."""
    place = ""
    c.where = lambda: place
    while True:
        c.pinned, found = c.source.state(), list[tuple[Any, str]]()
        for item in c.source:
            found.append((item, c.source.place()))
            if len(found) == window:
                break
        if not found:
            return
        key = (seed, c.epoch, c.own["window"])
        order = np.random.default_rng(key).permutation(len(found))
        for i in order[c.own["given"] :].tolist():
            c.own["given"] += 1
            item, place = found[i]
            yield item
        c.own = {"window": c.own["window"] + 1, "given": 0}


def bucket(c: Cursor, n: int, *, drop_remainder: bool) -> Iterator[list[Any]]:
    """Lists of ``n`` items; the last may be shorter, or is dropped."""
    place = ""
    c.where = lambda: f"from {place}" if place else ""
    while True:
        items = list[Any]()
        for item in c.source:
            place = place if items else c.source.place()
            items.append(item)
            if len(items) == n:
                break
        if not items or (drop_remainder and len(items) < n):
            return
        yield items


def longest(item: Any) -> int:
    """The length of a sequence; of a tuple or dict of sequences, that of the longest."""
    parts = item.values() if isinstance(item, dict) else item
    return max(map(len, parts)) if isinstance(item, tuple | dict) else len(item)


def _after_states(source: Cursor) -> Iterator[tuple[State, Any]]:
    """Each item with the state that the source has before it."""
    before = source.state()
    for item in source:
        yield before, item
        before = source.state()


def bucket_by_length(
    c: Cursor, sizes: Sequence[tuple[int, int]], length: Callable[[Any], int], *, skip_long: bool
) -> Iterator[list[Any]]:
    """Lists of items of like length: ``sizes`` are pairs of (items in a list, longest length).

    State: the source's before the oldest item held, and which items since then were given. On
    resume all since then are read again, and those that were given are left out.
    """
    c.where = str
    buckets = [list[tuple[int, Any]]() for _ in sizes]
    held = dict[int, State]()  # number of an item held -> the source's state before it
    number, given = c.own["number"], c.own["given"]
    given_before = {*given}

    def full(bucket: list[tuple[int, Any]]) -> list[Any]:
        items = [item for _, item in bucket]
        for each, _ in bucket:
            del held[each]
            given.append(each)
        bucket.clear()
        oldest = next(iter(held), number)  # items come in by number
        if oldest != c.own["number"]:
            given[:] = [each for each in given if each >= oldest]
        c.own["number"], c.pinned = oldest, held.get(oldest)
        return items

    for before, item in _after_states(c.source):
        number += 1
        if number - 1 in given_before:
            continue
        size = length(item)
        for bucket, (most, longest_length) in zip(buckets, sizes, strict=True):
            if size <= longest_length:
                held[number - 1] = before
                bucket.append((number - 1, item))
                if len(bucket) == most:
                    yield full(bucket)
                break
        else:
            if not skip_long:
                raise DataError(
                    f"bucket_by_length: item {number}{at_place(c.source)} has length {size}, and "
                    f"the longest bucket takes {sizes[-1][1]}. Add a bucket, or leave such items "
                    "out with skip_long=True."
                )
            given.append(number - 1)
    for bucket in filter(None, buckets):
        yield full(bucket)


def pack(c: Cursor, length: int, *, drop_remainder: bool) -> Iterator[NDArray[np.int64]]:
    """Blocks of ``length`` ids, cut from all sequences joined; the last may be shorter.

    State: the source's before the sequence that was cut last, and how much of it was given.
    """
    place, used, ids = "", c.own["used"], NONE
    c.where = lambda: f"from {place}" if place else ""
    parts, missing = list[NDArray[np.int64]](), length
    for before, item in _after_states(c.source):
        try:
            found = np.asarray(item)
        except (ValueError, TypeError):  # lists of several lengths
            found = np.array(None)
        if found.ndim != 1 or (found.size and found.dtype.kind not in "iu"):
            raise DataError(
                f"pack: wanted sequences of ids, but item {c.own['number'] + 1}"
                f"{at_place(c.source)} is {item!r:.80}. Encode with map before."
            )
        ids = found.astype(np.int64)
        while used < len(ids):
            piece = ids[used : used + missing]
            place = place if parts else c.source.place()
            used, missing = used + len(piece), missing - len(piece)
            parts.append(piece)
            if not missing:
                whole = used == len(ids)
                c.pinned = None if whole else before
                number = c.own["number"]
                c.own = {"number": number + whole, "used": 0 if whole else used}
                yield np.concatenate(parts)  # a copy: what is cut from is another block's too
                c.own["number"] = number
                parts, missing = [], length
        c.own["number"], used = c.own["number"] + 1, 0
    c.pinned, c.own["used"] = None, 0
    if parts and not drop_remainder:
        yield np.concatenate(parts)


# -- several sources


def mixed(c: Cursor, choose: Callable[[Cursor], tuple[int, int]]) -> Iterator[Any]:
    """Items of several sources: ``choose`` gives which is next, and the ``turn`` after it."""
    while not all(c.own["done"]):
        index, turn = choose(c)
        source = c.sources[index]
        c.where = source.place
        try:
            item = next(source)
        except StopIteration:
            c.own["done"][index] = True
            continue
        c.own["turn"] = turn
        yield item


def zipped(c: Cursor, *, shortest: bool) -> Iterator[tuple[Any, ...]]:
    """Tuples of one item of each."""
    c.where = lambda: ", ".join(dict.fromkeys(p for p in (s.place() for s in c.sources) if p))
    while not all(c.own["done"]):
        items, ended = list[Any](), list[int]()
        for index, source in enumerate(c.sources):
            try:
                items.append(next(source))
            except StopIteration:
                ended.append(index)
        if not ended:
            c.own["turn"] += 1
            yield tuple(items)
            continue
        c.own["done"] = [True] * len(c.sources)
        if len(ended) < len(c.sources) and not shortest:
            more = next(i for i in range(len(c.sources)) if i not in ended)
            raise DataError(
                f"zip: pipeline {ended[0] + 1} ended after {c.own['turn']} items, and pipeline "
                f"{more + 1} has more. Make them equally long, or zip with shortest=True."
            )


def in_order(c: Cursor) -> tuple[int, int]:
    """The first source that has not ended."""
    return c.own["done"].index(False), 0


def in_turn(c: Cursor) -> tuple[int, int]:
    """The next source in turn that has not ended."""
    count, index = len(c.sources), c.own["turn"]
    while c.own["done"][index]:
        index = (index + 1) % count
    return index, (index + 1) % count


def sample(c: Cursor, weights: Sequence[float], seed: int) -> Iterator[Any]:
    """Sources drawn by weight: the draw of item ``turn`` is a function of (seed, epoch, turn)."""
    known, draws = -1, np.zeros(0)

    def drawn(c: Cursor) -> tuple[int, int]:
        nonlocal known, draws
        page, at = divmod(c.own["turn"], DRAWS)
        if page != known:
            known, draws = page, np.random.default_rng((seed, c.epoch, page)).random(DRAWS)
        left = np.cumsum(np.where(c.own["done"], 0.0, weights))
        # The draw lies below the whole sum: the first sum above it is of a source with weight.
        return int(np.searchsorted(left, draws[at] * left[-1], side="right")), c.own["turn"] + 1

    return mixed(c, drawn)


# -- ahead


@dataclass
class _Made:
    """One item with the source's state and place after it, or what ended the source."""

    item: Any = None
    state: State | None = None
    place: str = ""
    error: BaseException | None = None


class Prefetch(Iterator[Any]):
    """The items of the source, up to ``n`` of them made ahead by a thread."""

    def __init__(self, node: PipelineNode[Any], epoch: int, state: State | None, *, n: int) -> None:
        source = node.open(epoch, state)
        self._state: State = source.state()
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
            made = self._ready.get()
            if made.state is not None:
                self._state, self._place = made.state, made.place
            if made.error is None:
                return made.item
            self._end = made.error
            self.close()
        raise self._end

    def state(self) -> State:
        return self._state

    def place(self) -> str:
        return self._place

    def close(self) -> None:
        self._close()
        if self._end is None:
            self._end = StopIteration()


def _work(source: Any, ready: "queue.Queue[_Made]", stop: threading.Event) -> None:
    made = _Made()
    while made.error is None and not stop.is_set():
        try:
            made = _Made(next(source), source.state(), source.place())
        except StopIteration as end:
            made = _Made(state=source.state(), error=end)
        except BaseException as error:  # raised again where items are taken
            made = _Made(error=error)
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
