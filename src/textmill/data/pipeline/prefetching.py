"""prefetch: a thread works ahead; the state is that of the last item handed out."""

import queue
import threading
import weakref
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from typing_extensions import override

from textmill.data.pipeline.node import Cursor, PipelineNode, State

T = TypeVar("T")
WAIT = 0.1  # seconds until a thread that nobody reads from looks whether it should stop


@dataclass
class _Made:
    """One item with the source's state and place after it, or what ended the source."""

    item: Any = None
    state: State | None = None
    place: str = ""
    error: BaseException | None = None


class Prefetch(Cursor[T]):
    """The items of the source, up to ``n`` of them made ahead by a thread."""

    def __init__(self, node: PipelineNode[T], epoch: int, state: State | None, *, n: int) -> None:
        source = node.open(epoch, state)
        self._state, self._place = source.state(), ""
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
    def __next__(self) -> T:
        if self._end is None:
            made = self._ready.get()
            if made.state is not None:
                self._state, self._place = made.state, made.place
            if made.error is None:
                item: T = made.item
                return item
            self._end = made.error
            self.close()
        raise self._end

    @override
    def state(self) -> State:
        return self._state

    @override
    def place(self) -> str:
        return self._place

    @override
    def close(self) -> None:
        self._close()
        if self._end is None:
            self._end = StopIteration()


def _work(source: Cursor[Any], ready: "queue.Queue[_Made]", stop: threading.Event) -> None:
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
