"""Asking a run to stop: the first signal is remembered and polled, so the state is saved first."""

import logging
import os
import signal
import threading
import time
from types import FrameType
from typing import Any

from textmill.errors import RunStoppedError

LOG = logging.getLogger("textmill")
_LISTENING: "list[StopSignals]" = []
_STOPPED = threading.Event()
"""Set where a run of this process was asked to stop, and has saved."""
GRACE_SECONDS = 10.0
"""What a stopped run has to write down its end, before its process is ended without its parent."""


class StopSignals:
    """While the block runs, SIGTERM and SIGINT set ``received`` instead of ending the process.

    Every loop of a run polls ``received`` (steps, evaluation, decoding), and ranks agree on it with
    ``Ranks.any``. A second SIGINT raises KeyboardInterrupt at once. Forked children (data workers)
    do not inherit this: SIGTERM ends them, SIGINT, which a terminal sends to all, leaves the
    decision to the parent. Outside the main thread Python allows no handlers: there
    :func:`ask_to_stop` alone sets ``received``.
    """

    def __init__(self) -> None:
        self.received: int | None = None
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> "StopSignals":
        self._owner = os.getpid()
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGTERM, signal.SIGINT):
                self._previous[number] = signal.signal(number, self._handle)
        _LISTENING.append(self)
        return self

    def _handle(self, number: int, frame: FrameType | None) -> None:
        if os.getpid() != self._owner:
            if number == signal.SIGTERM:
                signal.signal(number, signal.SIG_DFL)
                os.kill(os.getpid(), number)
            return
        if number == signal.SIGINT and self.received == signal.SIGINT:
            raise KeyboardInterrupt
        self.received = number

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        _LISTENING.remove(self)
        if kind is not None and issubclass(kind, RunStoppedError):
            _STOPPED.set()
        while self._previous:
            number, handler = self._previous.popitem()
            signal.signal(number, signal.SIG_DFL if handler is None else handler)


def ask_to_stop(number: int) -> None:
    """Asks what this process runs to stop, as if the signal had come to it."""
    for listening in _LISTENING:
        listening.received = listening.received or number


def stop_without_parent() -> None:
    """Sends this process a SIGTERM when the one that started it has died, killed by SIGKILL, say.

    So what it runs is saved, and no other process is kept out of the run's folder for long.
    """
    parent = os.getppid()

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(1.0)
        LOG.warning("The process that started this one (%d) has died: it is stopped.", parent)
        if _STOPPED.is_set():  # another rank saw it first: this one writes down its end
            time.sleep(GRACE_SECONDS)
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=watch, name="textmill-parent", daemon=True).start()
