"""Waiting for what other processes and threads do."""

import time
from collections.abc import Callable


def wait_until(
    happens: Callable[[], object], said: Callable[[], object] = lambda: "", *, seconds: float = 60
) -> None:
    """Waits for what must come; ``said`` is shown where it does not."""
    until = time.monotonic() + seconds
    while not happens():
        assert time.monotonic() < until, said()
        time.sleep(0.005)
