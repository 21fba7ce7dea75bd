"""The program that serves a model: its socket, what it does with slow senders, and how it ends."""

import asyncio
import contextlib
import errno
import gc
import json
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import uvicorn
from typing_extensions import override
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol

from textmill.errors import UserError
from textmill.serving.app import Service, make_app
from textmill.serving.limits import RefusedError

MOST_HEAD = 1 << 16
"""Bytes of a request's line and headers; a browser sends some two thousand."""
BACKLOG = 2048
HEADERS_THAT_MATTER = re.compile(
    rb"(?i)\r\n(?:content-length: *([0-9]+)(?=\r|$)"
    rb"|content-length|transfer-encoding|expect|connection)"
)
"""Of a request that is refused unread: its one length; others say that there is more to it."""


def bound(host: str, port: int) -> socket.socket:
    """A socket that listens; who connects before the model is there waits for it.

    Raises:
        UserError: The address cannot be had.
    """
    try:
        if port not in range(1 << 16):
            raise OSError(errno.ERANGE, "a port is a number up to 65535")
        family, *_, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        return socket.create_server((address[0], port), family=family, backlog=BACKLOG)
    except OSError as error:
        why = (error.strerror or str(error)).partition(" (")[0]
        raise UserError(
            f"{host}:{port} cannot be served at: {why}. Name another --port (0 "
            "is any that is free), or another --host."
        ) from None


def serve(service: Service, listener: socket.socket, ready: Callable[[str], None]) -> None:
    """Serves until SIGTERM or SIGINT; questions that were admitted are answered first.

    A second signal ends the process at once.

    Args:
        service: The model.
        listener: As :func:`bound` makes it.
        ready: Called with the address when questions are answered.
    """
    limits = service.limits
    config = _Config(
        make_app(service),
        http=_Guarded,
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("X-Content-Type-Options", "nosniff")],
        backlog=BACKLOG,
        timeout_graceful_shutdown=max(1, round(limits.timeout + limits.read_timeout)),
    )
    config.service = service
    # All that torch has imported would be looked through now and then, which takes 0.2 s.
    gc.collect()
    gc.freeze()
    _Server(config, service, ready).run(sockets=[listener])
    service.batcher.close()


class _Config(uvicorn.Config):
    """uvicorn's settings, with what is served."""

    service: Service


class _Guarded(HttpToolsProtocol):
    """A connection that waits for no slow request, nor for a body that nobody reads any more.

    Where too much is asked already, it refuses questions itself: a task of the application for
    each would take the time in which others are answered.
    """

    config: _Config
    _timer: asyncio.TimerHandle | None = None
    """Runs from a request's first byte to its last."""
    _head: int | None = None
    """Bytes of a head that is not whole; None between heads."""
    _running: Any = None
    """The request that is answered now; ``cycle`` is the one that came last."""
    _asked_at = 0.0
    """When a question was refused last."""

    @override
    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        most = self.config.service.limits.connections
        if len(self.connections) > most:
            self._refuse(503, f"Wanted at most {most:,} connections. Ask again later.")
        else:
            self._wait()

    @override
    def data_received(self, data: bytes) -> None:
        if self.transport.is_closing() or self._refuses(data):
            return
        if self._head is None and not self._body_comes():
            self._head = 0
        if self._head is not None:
            rest = MOST_HEAD - self._head
            if len(data) > rest and b"\r\n\r\n" not in data[:rest]:
                self._refuse(431, f"Wanted a head of at most {MOST_HEAD:,} bytes.")
                return
            self._head += len(data)
        super().data_received(data)
        if self._timer is None and (self._head is not None or self._body_comes()):
            self._wait()

    @override
    def on_headers_complete(self) -> None:
        self._head = None
        super().on_headers_complete()

    @override
    def on_message_complete(self) -> None:
        self._unwait()
        cycle: Any = self.cycle
        if not self.pipeline and not self._idle() and cycle.scope["path"] == "/predict":
            self.config.service.arriving(cycle.scope)
        super().on_message_complete()
        cycle.more_body = False  # of a request that is refused before it is whole, too

    @override
    def _start_asgi_task(self, cycle: Any, app: Any) -> None:
        self._running = cycle
        super()._start_asgi_task(cycle, app)

    @override
    def connection_lost(self, exc: Exception | None) -> None:
        self._unwait()
        super().connection_lost(exc)
        if (cycle := self._running) is not None and not cycle.response_complete:
            self._leave(cycle)
            if left := cycle.scope["state"].get("left"):
                left()

    def _leave(self, cycle: Any) -> None:
        """Whatever a request is answered, nobody hears it."""
        cycle.disconnected = True
        cycle.message_event.set()

    @override
    def send_400_response(self, msg: str) -> None:
        self._refuse(400, f"Wanted a request of HTTP; {msg}")

    def _refuses(self, data: bytes) -> bool:
        """Refuses a whole question that finds a full queue, and has nothing before or behind it."""
        service = self.config.service
        if not (data.startswith(b"POST /predict HTTP/1.1\r\n") and self._idle()):
            return False
        if self._head is not None or service.stopping or not service.batcher.full():
            return False
        head, _, body = data.partition(b"\r\n\r\n")
        found = HEADERS_THAT_MATTER.findall(head)
        if len(found) != 1 or found[0] != b"%d" % len(body):
            return False
        self._unwait()
        self._asked_at = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self.timeout_keep_alive_handler()
        self._answer(service.batcher.refusal())
        return True

    @override
    def timeout_keep_alive_handler(self) -> None:
        """Ends a connection on which nothing was asked for a while; looks again where it was."""
        rest = self._asked_at + self.timeout_keep_alive - self.loop.time()
        if rest > 0:
            again = self.loop.call_later(rest, self.timeout_keep_alive_handler)
            self.timeout_keep_alive_task = again
        else:
            super().timeout_keep_alive_handler()

    def _idle(self) -> bool:
        """Whether no request waits for its answer."""
        cycle: Any = self.cycle
        return cycle is None or cycle.response_complete

    def _body_comes(self) -> bool:
        cycle: Any = self.cycle
        return cycle is not None and cycle.more_body

    def _wait(self) -> None:
        self._unwait()
        self._timer = self.loop.call_later(self.config.service.limits.read_timeout, self._late)

    def _unwait(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _late(self) -> None:
        waits = self._body_comes() and not self.cycle.response_started
        if self._head or waits:
            seconds = self.config.service.limits.read_timeout
            self._refuse(408, f"Wanted the whole request in {seconds:g} s.")
        self.transport.close()

    def _refuse(self, status: int, text: str) -> None:
        path = "other"
        if not self._idle():
            cycle: Any = self.cycle
            if cycle.more_body:
                cycle.scope["state"]["refused"] = True  # and counted, here
                path = cycle.scope["path"]
            self._leave(cycle)
        closed = {"Connection": "close"}
        self._answer(RefusedError(status, text, where="connection", headers=closed), path)

    def _answer(self, refusal: RefusedError, path: str = "/predict") -> None:
        self.config.service.count(path, refusal.status)
        text, headers = str(refusal.args[0]), tuple(refusal.headers.items())
        self.transport.write(_written(refusal.status, text, refusal.where, headers))
        if "Connection" in refusal.headers:
            self.transport.close()


@lru_cache(maxsize=64)
def _written(status: int, text: str, where: str, headers: tuple[tuple[str, str], ...]) -> bytes:
    body = json.dumps({"error": text, "where": where})
    head = {"content-type": "application/json", "content-length": len(body), **dict(headers)}
    lines = "".join(f"{name.lower()}: {value}\r\n" for name, value in head.items())
    return STATUS_LINE[status] + f"{lines}\r\n{body}".encode()


class _Server(uvicorn.Server):
    """Ends in order: no new questions, the last answers, then the connections."""

    def __init__(
        self, config: uvicorn.Config, service: Service, ready: Callable[[str], None]
    ) -> None:
        super().__init__(config)
        self._service, self._ready = service, ready
        self._ending: asyncio.Task[None] | None = None

    @override
    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for listener in sockets or []:
            host, port = listener.getsockname()[:2]
            self._ready(f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}")

    @override
    @contextlib.contextmanager
    def capture_signals(self) -> Iterator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._end, number)
        yield

    def _end(self, number: int) -> None:
        if self._ending is not None:
            os._exit(128 + number)
        self._service.stopping = True
        self._ending = asyncio.get_running_loop().create_task(self._end_in_order())

    async def _end_in_order(self) -> None:
        while self._service.batcher.admitted:
            await asyncio.sleep(0.02)
        self.should_exit = True
