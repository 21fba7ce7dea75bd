"""Who of the ranks is alive: each has a connection with rank 0, which the kernel watches.

A process that ends, however it ends, has its connection closed at once; a machine that cannot be
reached is noticed by the kernel's own signs of life. Nothing of it waits for Python, so a rank that
reads data for hours, or holds the interpreter's lock, is not taken for dead.
"""

import json
import logging
import os
import queue
import secrets
import selectors
import socket
import threading
import time
from contextlib import suppress
from typing import Any

from textmill.errors import OtherRankError, RankLostError
from textmill.runtime.devices import Env

LOG = logging.getLogger("textmill")

SILENCE = 15
"""Seconds without an answer after which a machine is taken for gone, or the way to it."""
GRACE = 8
"""Seconds that a rank has to end in order once it knows of another's end; then it is ended, as it
may wait for ever for a machine that cannot be reached."""
_PATIENCE = 5.0
"""Seconds for a connection to be made, and for the answer to its first message."""
KEY = "textmill/liveness"
_END = object()
"""Follows the last value that is received."""


class Liveness:
    """The connections of all ranks with rank 0, by which each learns of the first that is lost.

    Rank 0 tells what it learns to all. A process that does not end within :data:`GRACE` seconds
    afterwards is ended with the exit code of the first.

    Args:
        env: This process's place.
        store: torch's, which all ranks see. It may hold what an earlier attempt has left.
        host: The host of rank 0 if it is known; else the name that rank 0 has for itself is tried.
        timeout: Seconds to wait until all ranks are there.

    Raises:
        RankLostError: They are not there in time.
    """

    attempt: str
    """The name of this attempt, the same on all ranks."""
    error: str | None = None
    """The first error that ended a rank, once this one knows it."""
    exit_code: int = RankLostError.exit_code
    """Exit code of the rank that ended first."""
    error_before: str | None = None
    """The error of the attempt before, if a launcher has kept the store; on rank 0 only."""

    def __init__(self, env: Env, store: Any, *, host: str | None, timeout: float) -> None:
        self.env, self._store = env, store
        self._links: dict[int, _Link] = {}
        self._lock = threading.Lock()
        self._turns: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self._told, self._ending = threading.Event(), threading.Event()
        place = f"rank {env.rank} (process {os.getpid()} on {socket.gethostname()})"
        deadline = time.monotonic() + timeout
        if env.is_main:
            self._welcome(place, deadline)
        else:
            self._arrive(place, host, deadline)
        os.register_at_fork(after_in_child=self._let_go)
        waiting = selectors.DefaultSelector()
        for rank, link in self._links.items():
            waiting.register(link.connection, selectors.EVENT_READ, rank)
        watch = threading.Thread(
            target=self._watch, args=(waiting,), name="textmill-liveness", daemon=True
        )
        watch.start()

    def _welcome(self, place: str, deadline: float) -> None:
        """Rank 0 waits for all the others."""
        if self._store.check([KEY]):
            self.attempt = json.loads(self._store.get(KEY))[0]
            self.error_before = "The launcher has said why."
            with suppress(RuntimeError):
                if self._store.check([self._error_key]):
                    self.error_before = self._store.get(self._error_key).decode()
        dual, size = socket.has_dualstack_ipv6(), self.env.world_size
        family = socket.AF_INET6 if dual else socket.AF_INET
        with socket.create_server(
            ("", 0), family=family, backlog=size, dualstack_ipv6=dual
        ) as server:
            self.attempt = secrets.token_hex(16)
            where = [self.attempt, socket.gethostname(), server.getsockname()[1]]
            self._store.set(KEY, json.dumps(where))
            while missing := set(range(1, size)) - self._links.keys():
                server.settimeout(max(deadline - time.monotonic(), 0.001))
                try:
                    connection, _ = server.accept()
                except TimeoutError:
                    raise RankLostError(_no_connection(self.env, missing)) from None
                link = _Link(connection)
                match link.first():
                    case [self.attempt, int(rank), str(its_place)] if 0 < rank < size:
                        link.place, self._links[rank] = its_place, link
                        link.send(place)
                    case _:  # a stranger, or a rank of an earlier attempt
                        link.close()

    def _arrive(self, place: str, host: str | None, deadline: float) -> None:
        """Another rank asks the store where rank 0 is, until it finds that of this attempt."""
        while time.monotonic() < deadline:
            self.attempt, name, port = json.loads(self._store.get(KEY))
            for where in dict.fromkeys(filter(None, (host, name, "localhost"))):
                with suppress(OSError):
                    link = _Link(socket.create_connection((where, port), _PATIENCE))
                    link.send([self.attempt, self.env.rank, place])
                    if isinstance(answer := link.first(), str):
                        link.place, self._links[0] = answer, link
                        return
                    link.close()
            time.sleep(0.1)
        raise RankLostError(_no_connection(self.env, {0}))

    def send(self, value: Any) -> None:
        """Sends a value, plain as in JSON, from rank 0 to all others, who :meth:`receive` it."""
        self._to_all(["turn", value])

    def receive(self) -> Any:
        """The next value that rank 0 has sent, for as long as that takes.

        Raises:
            OtherRankError: A rank was lost meanwhile.
        """
        value = self._turns.get()
        if value is _END:
            self._turns.put(_END)
            raise self.lost()
        return value

    def tell(self, error: str, exit_code: int) -> None:
        """Tells all ranks why this one ends, and with which exit code.

        Raises:
            OtherRankError: Another one was first.
        """
        if self.env.is_main:
            self._learn(error, exit_code)
        else:
            self._to_all(["error", [error, exit_code]])
            self._told.wait(_PATIENCE)  # rank 0 tells all who was first
        if self.error not in (None, error):
            raise self.lost()
        self._ending.set()

    def wait(self, seconds: float) -> str | None:
        """The first error that ended a rank, as soon as it is known; None after so many seconds."""
        self._told.wait(seconds)
        return self.error

    def lost(self) -> OtherRankError:
        """The error to raise when a rank was lost: the process ends in order from here on."""
        self._ending.set()
        return OtherRankError(self.error or "Rank 0 has left.", exit_code=self.exit_code)

    def close(self) -> None:
        """Says that this rank leaves, having done all it had to."""
        self._ending.set()
        self._to_all(["bye", None])
        for link in self._links.values():
            link.shut()

    def _to_all(self, message: Any) -> None:
        with self._lock:
            for link in self._links.values():
                link.send(message)

    def _watch(self, waiting: selectors.BaseSelector) -> None:
        with waiting:
            while waiting.get_map() and not self._told.is_set():
                for key, _ in waiting.select(1.0):
                    if not self._heard(key.data):
                        waiting.unregister(key.fileobj)
        self._told.set()  # where all have left, nobody will say anything any more
        self._turns.put(_END)
        if self.error is not None and not self._ending.wait(GRACE):
            os._exit(self.exit_code)
        self._let_go()

    def _heard(self, rank: int) -> bool:
        """Does what a rank says; returns whether there may be more."""
        messages = self._links[rank].read()
        for kind, value in messages or ():
            if kind == "turn":
                self._turns.put(value)
            elif kind == "error":
                self._learn(*value, told=True)
            else:  # it has left
                return False
        if messages is None and not self._ending.is_set():
            self._learn(
                f"{self._links[rank].place} died, or cannot be reached any more: all ranks end. "
                "The same command goes on from the last checkpoint.",
                RankLostError.exit_code,
                found=True,
            )
        return messages is not None

    def _learn(
        self, error: str, exit_code: int, *, told: bool = False, found: bool = False
    ) -> None:
        """Keeps the first error; rank 0 hands it on, and leaves it to the next attempt."""
        with self._lock:
            if self.error is not None:
                return
            self.error, self.exit_code = error, exit_code
        if self.env.is_main:
            self._to_all(["error", [error, exit_code]])
        failed = exit_code < 128  # else a signal ended it, as Ctrl-C does all
        if found or (told and failed and self.env.is_main):  # it says so on its terminal itself
            LOG.error("error: %s", error, extra={"to_file": told})
        if found or self.env.is_main:

            def note() -> None:
                with suppress(RuntimeError):
                    self._store.compare_set(self._error_key, "", error)  # the first stays

            thread = threading.Thread(target=note, daemon=True)
            thread.start()
            thread.join(1.0)  # the store may be out of reach
        self._told.set()

    @property
    def _error_key(self) -> str:
        return f"textmill/{self.attempt}/error"

    def _let_go(self) -> None:
        """Closes the connections; in a forked process, the copies that would keep them open."""
        for link in self._links.values():
            link.close()


class _Link:
    """A connection, each line of which is a message in JSON."""

    place = ""

    def __init__(self, connection: socket.socket) -> None:
        self.connection, self._rest = connection, b""
        connection.settimeout(_PATIENCE)
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
        idle = "TCP_KEEPIDLE" if hasattr(socket, "TCP_KEEPIDLE") else "TCP_KEEPALIVE"  # macOS
        third = SILENCE // 3
        for option, value in (
            (idle, third),
            ("TCP_KEEPINTVL", 2),
            ("TCP_KEEPCNT", third),
            ("TCP_USER_TIMEOUT", 1000 * SILENCE),  # of what was sent and is not confirmed
        ):
            if hasattr(socket, option):
                connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)

    def send(self, message: Any) -> None:
        """Sends a message; if that is impossible, :meth:`read` will say so."""
        with suppress(OSError):
            self.connection.sendall(json.dumps(message).encode() + b"\n")

    def read(self) -> list[Any] | None:
        """The messages that have come; None if the other end is gone."""
        try:
            data = self.connection.recv(1 << 16)
            *lines, self._rest = (self._rest + data).split(b"\n")
            return [json.loads(line) for line in lines] if data else None
        except (OSError, ValueError):
            return None

    def first(self) -> Any:
        """The first message; None if none comes. What comes with it is left for :meth:`read`."""
        line = b""
        with suppress(OSError, ValueError):
            while not line.endswith(b"\n") and len(line) < 1 << 16:  # a stranger may send for ever
                if not (byte := self.connection.recv(1)):
                    return None
                line += byte
            return json.loads(line)
        return None

    def shut(self) -> None:
        """Ends the connection, on which a thread may be waiting."""
        with suppress(OSError):
            self.connection.shutdown(socket.SHUT_RDWR)

    def close(self) -> None:
        self.connection.close()


def _no_connection(env: Env, missing: set[int]) -> str:
    names = ", ".join(map(str, sorted(missing)))
    return (
        f"Rank {env.rank} of {env.world_size} found no connection to rank {names}.\nStart as many "
        "processes as WORLD_SIZE says, all of which reach MASTER_ADDR and MASTER_PORT."
    )
