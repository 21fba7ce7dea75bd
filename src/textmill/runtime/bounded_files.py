"""Files of run folders, read as what they must be: regular files of bounded size, depth and items.

A run folder may come from anyone. What a file may hold is bounded by what textmill writes there,
before it is read, so that nothing in it can hang a command or fill its memory.
"""

import json
import math
import os
import stat
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from io import BufferedReader
from pathlib import Path
from typing import Any

MOST_DEPTH = 256
"""Levels of a JSON document; the state of a run has some 10, and may have 64 of its own."""
MOST_ITEMS = 1 << 20
"""Lists, mappings and commas of a JSON document: parsed in half a second and 100 MB at most. The
state of a run has some thousand."""
VERSION = "format_version"
"""The key of the number that each saved document has: it changes with what the document means."""
MOST_BITS = 256
"""Of an integer; a random generator's have 128."""

Refusal = Callable[[str], Exception]
"""The caller's own error of a reason, which begins with the file's name."""


@contextmanager
def opened(
    path: Path, refuse: Refusal, *, name: str | None = None, links: bool = False
) -> Iterator[tuple[BufferedReader, int]]:
    """A regular file, open, and its bytes; a pipe or a device of its name does not hang.

    An error calls it ``name``, by default its last one. With ``links`` a symbolic link is followed.

    Raises:
        Exception: What ``refuse`` makes: it is missing, cannot be read, or is no regular file.

    Example:
        >>> with opened(Path("/dev/null"), ValueError, links=True):
        ...     pass
        Traceback (most recent call last):
        ValueError: null: not a regular file
    """
    name = path.name if name is None else name
    flags = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK | (0 if links else os.O_NOFOLLOW)
    try:
        descriptor = os.open(path, flags)
    except FileNotFoundError:
        raise refuse(f"{name}: missing") from None
    except OSError as error:
        reason = "a symbolic link" if not links and path.is_symlink() else error.strerror
        raise refuse(f"{name}: cannot be read: {reason}") from error
    try:
        found = os.fstat(descriptor)
        if not stat.S_ISREG(found.st_mode):
            raise refuse(f"{name}: not a regular file")
        with os.fdopen(descriptor, "rb", closefd=False) as file:
            yield file, found.st_size
    except OSError as error:  # the disk cannot read back what it took
        raise refuse(f"{name}: cannot be read: {error.strerror}") from error
    finally:
        os.close(descriptor)


def read_all(
    path: Path, largest: int, refuse: Refusal, *, name: str | None = None, links: bool = False
) -> bytes:
    """The content of a regular file of at most ``largest`` bytes; else as :func:`opened`.

    Example:
        >>> read_all(Path(__file__), 10, ValueError, name="it")  # doctest: +ELLIPSIS
        Traceback (most recent call last):
        ValueError: it: ... bytes are more than the 10 allowed
    """
    with opened(path, refuse, name=name, links=links) as (file, size):
        if size > largest:
            name = path.name if name is None else name
            raise refuse(f"{name}: {size:,} bytes are more than the {largest:,} allowed")
        return file.read(size)  # room for as much is made, and ``largest`` may be a GB


def parse_json(data: bytes, name: str, refuse: Refusal, *, nan: bool = False) -> Any:
    """Reads JSON of bounded depth, number of items and size of numbers; no key stands twice.

    With ``nan`` NaN and infinities are numbers.

    Raises:
        Exception: What ``refuse`` makes: it is something else.

    Example:
        >>> parse_json(b'{"size": NaN}', "manifest.json", ValueError)
        Traceback (most recent call last):
        ValueError: manifest.json: not readable as JSON: NaN is not a number here
        >>> parse_json(b"1e999", "run.json", ValueError)
        Traceback (most recent call last):
        ValueError: run.json: not readable as JSON: 1e999 is not a number here
    """
    if (items := count_items(data)) > MOST_ITEMS:
        raise refuse(f"{name}: {items:,} items are more than the {MOST_ITEMS:,} allowed")
    try:
        found = json.loads(
            data,
            parse_constant=float if nan else _refuse,
            parse_int=_int,
            parse_float=float if nan else _float,
            object_pairs_hook=_unique,
        )
    except RecursionError:
        raise refuse(f"{name}: nested too deeply") from None
    except ValueError as error:
        raise refuse(f"{name}: not readable as JSON: {error}") from error
    if _is_deep(found):
        raise refuse(f"{name}: nested too deeply")
    return found


def check_version(content: object, version: int, name: str, refuse: Refusal) -> None:
    """Refuses a document that is of another format than the one that is read.

    Raises:
        Exception: What ``refuse`` makes.

    Example:
        >>> check_version({"format_version": 2}, 1, "run.json", ValueError)
        Traceback (most recent call last):
        ValueError: run.json has format_version 2, and this textmill reads 1
    """
    found = content.get(VERSION) if isinstance(content, Mapping) else None
    if type(found) is not int or found != version:
        number = "no format_version" if found is None else f"format_version {found!r:.40}"
        raise refuse(f"{name} has {number}, and this textmill reads {version}")


def count_items(data: bytes) -> int:
    """At least as many as the values in a JSON document, less one.

    Example:
        >>> count_items(b'{"a": [1, 2], "b": {}}')
        5
    """
    return sum(data.count(sign) for sign in (b"[", b"{", b","))


def _is_deep(value: Any) -> bool:
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(MOST_DEPTH):
        held = [v.values() if isinstance(v, dict) else v for v in level]
        level = [v for values in held for v in values if isinstance(v, dict | list)] if held else []
        if not level:
            return False
    return True


def _refuse(constant: str) -> float:
    raise ValueError(f"{constant} is not a number here")


def _int(digits: str) -> int:
    if len(digits) > MOST_BITS or (number := int(digits)).bit_length() > MOST_BITS:
        raise ValueError(f"{digits[:20]}… is not a number here")
    return number


def _float(digits: str) -> float:
    number = float(digits)
    return number if math.isfinite(number) else _refuse(digits[:20])


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        raise ValueError("a key is given twice")
    return result
