"""The program that serves a model: its socket, uvicorn's settings, and how it ends."""

import asyncio
import contextlib
import errno
import gc
import os
import re
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path

import uvicorn
from typing_extensions import override

from textmill.errors import UserError
from textmill.runtime.files import opened
from textmill.serving.app import Service, make_app

BACKLOG = 2048
LONGEST, SHORTEST = 4096, 16
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""Tokens that fit in a header (RFC 6750)."""


def bound(host: str, port: int) -> socket.socket:
    """A listening socket; clients that connect before the model is loaded wait for it."""
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

    A second signal ends the process at once. ``ready`` is called with the address when questions
    are answered.
    """
    limits = service.limits
    config = uvicorn.Config(
        make_app(service),
        http="httptools",
        ws="none",
        lifespan="off",
        log_config=None,
        log_level="error",
        access_log=False,
        proxy_headers=False,
        server_header=False,
        headers=[("X-Content-Type-Options", "nosniff")],
        backlog=BACKLOG,
        limit_concurrency=limits.connections + 1,  # it refuses the one that makes so many
        timeout_graceful_shutdown=max(1, round(limits.timeout)),
    )
    # Else each full collection would scan all that torch has imported, which takes 0.2 s.
    gc.collect()
    gc.freeze()
    _Server(config, service, ready).run(sockets=[listener])
    service.batcher.close()


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


def read_token(path: Path) -> str:
    """The token in a file: its only line."""
    how = 'Make one: python -c "import secrets; print(secrets.token_urlsafe())"'

    def refuse(reason: str) -> UserError:
        return UserError(f"The token's file cannot be used: {reason}. {how}")

    with opened(path, refuse, name=str(path), links=True) as (file, _):
        mode = os.fstat(file.fileno()).st_mode
        if mode & 0o077:
            raise UserError(
                f"{path} is not only yours to read (its mode is {mode & 0o777:o}). "
                f"Make it so: chmod 600 {path}"
            )
        text = file.read(LONGEST + 1).decode("utf-8", errors="replace").strip()
    if not TOKEN.fullmatch(text) or not SHORTEST <= len(text) <= LONGEST:
        raise refuse(
            f"{path}: wanted one line of {SHORTEST} letters and digits or more; "
            f"found {len(text):,} characters"
        )
    return text
