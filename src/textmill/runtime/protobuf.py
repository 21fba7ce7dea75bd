"""Messages of protocol buffers, read without the schema that they were written by.

Source: https://protobuf.dev/programming-guides/encoding.
"""

from collections.abc import Iterator
from typing import Any

NUMBER, BYTES, WIDTHS = 0, 2, {1: 8, 5: 4}
"""Kinds of values: a number, so many bytes, and those of a fixed width."""
LONGEST_NUMBER = 10
"""Bytes."""


def message_fields(message: bytes | memoryview) -> Iterator[tuple[int, Any]]:
    r"""The numbers and values of a message's fields; each is an integer, or a part of the message.

    Raises:
        ValueError: It is no message.

    Example:
        >>> [*message_fields(b"\x0a\x02hi\x18\xac\x02")]
        [(1, b'hi'), (3, 300)]
    """
    at, end = 0, len(message)
    while at < end:
        tag, at = _number(message, at)
        kind = tag & 7
        if kind == NUMBER:
            number, at = _number(message, at)
            yield tag >> 3, number
            continue
        size = WIDTHS.get(kind)
        if kind == BYTES:
            size, at = _number(message, at)
        if size is None or size > end - at:
            raise ValueError("it is no message of protocol buffers")
        yield tag >> 3, message[at : at + size]
        at += size


def _number(message: bytes | memoryview, at: int) -> tuple[int, int]:
    """A number of seven bits a byte, the lowest first, and where it ends."""
    value = 0
    for place in range(min(LONGEST_NUMBER, len(message) - at)):
        byte = message[at + place]
        value |= (byte & 0x7F) << 7 * place
        if byte & 0x80 == 0:
            return value, at + place + 1
    raise ValueError("it is no message of protocol buffers")
