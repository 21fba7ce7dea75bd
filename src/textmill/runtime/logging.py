"""Lines for a person: plain on the terminal, where nothing in them is obeyed; dated in log.txt."""

import logging
import os
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

from typing_extensions import override

from textmill.runtime.disk import open_in_place

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""All but tab and line feed: a carriage return hides what stands before it."""


def printable(text: str) -> str:
    r"""The text with its control characters and lone surrogates as escapes.

    Labels, errors and names of files may come from a stranger; an escape sequence in one of them
    could clear the screen, rename the window or hide a line.
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)


LOG_FILE = "log.txt"
_FORMAT = "%(asctime)s.%(msecs)03d %(levelname)-7s %(name)s: %(message)s"
_NAME = "textmill-stderr"


_SAID = ContextVar[set[str] | None]("_SAID", default=None)


@contextmanager
def each_line_once(said: set[str]) -> Iterator[None]:
    """While the block runs, shows no line on stderr that is in ``said``, and adds it.

    ``log.txt`` has all lines.
    """
    token = _SAID.set(said)
    try:
        yield
    finally:
        _SAID.reset(token)


class _Stderr(logging.StreamHandler):  # type: ignore[type-arg]  # not generic at run time
    """Writes to whatever ``sys.stderr`` is now, so that redirections and captures are respected."""

    @override
    def emit(self, record: logging.LogRecord) -> None:
        if getattr(record, "to_file", False):  # what is said here in another way
            return
        if (said := _SAID.get()) is not None:
            if (line := record.getMessage()) in said:
                return
            said.add(line)
        self.stream = sys.stderr
        super().emit(record)


class _UserLevel(logging.Filter):
    """Keeps the user's level at a handler while textmill's logger lets more through to a file."""

    def __init__(self, level: int) -> None:
        super().__init__("textmill")
        self._level = level

    @override
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno >= self._level or not super().filter(record)


def _handlers_of_user(logger: logging.Logger) -> Iterator[logging.Handler]:
    yield from logger.handlers
    if logger.propagate and logger.parent is not None:
        yield from _handlers_of_user(logger.parent)


class _Printable(logging.Formatter):
    """Lines without what a terminal would obey: they name what files and rows have."""

    @override
    def format(self, record: logging.LogRecord) -> str:
        return printable(super().format(record))


def log_to_stderr(rank: int = 0) -> None:
    """Shows textmill's lines on stderr as plain messages; a second call replaces the first.

    Rank 0 shows all but what is for debugging, the others errors only, marked with their rank: what
    they read is what rank 0 reads.
    """
    logger = logging.getLogger("textmill")
    for old in [handler for handler in logger.handlers if handler.name == _NAME]:
        logger.removeHandler(old)
    handler = _Stderr()
    handler.name = _NAME
    handler.setLevel(logging.INFO if rank == 0 else logging.ERROR)
    prefix = "" if rank == 0 else f"[rank {rank}] "
    handler.setFormatter(_Printable(f"{prefix}%(message)s"))
    logger.addHandler(handler)
    if logger.getEffectiveLevel() > logging.INFO:
        logger.setLevel(logging.INFO)


@contextmanager
def log_to_folder(folder: Path) -> Iterator[None]:
    """While the block runs, appends textmill's lines, dated, to the folder's ``log.txt``.

    The file has all lines from ``INFO`` on; the caller's own handlers keep the level of the logger
    ``textmill``. If no logging is configured, warnings go to stderr as well, as Python shows them
    if a logger has no handler.
    """
    descriptor = open_in_place(folder / LOG_FILE, os.O_RDWR | os.O_CREAT | os.O_APPEND)
    stream = os.fdopen(descriptor, "a", encoding="utf-8", errors="backslashreplace")
    handler, shown = logging.StreamHandler(stream), _Stderr()
    handler.setLevel(logging.INFO)
    handler.setFormatter(_Printable(_FORMAT, datefmt="%Y-%m-%d %H:%M:%S"))
    logger = logging.getLogger("textmill")
    before, wanted = logger.level, logger.getEffectiveLevel()
    of_user, filtered = list(_handlers_of_user(logger)), _UserLevel(wanted)
    shown.setLevel(max(wanted, logging.WARNING))
    shown.setFormatter(_Printable("%(message)s"))
    for each in (handler,) if of_user else (handler, shown):
        logger.addHandler(each)
    for users in of_user:
        users.addFilter(filtered)
    if wanted > logging.INFO:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        for each in (handler, shown):
            logger.removeHandler(each)
        for users in of_user:
            users.removeFilter(filtered)
        logger.setLevel(before)
        handler.close()
        stream.close()
