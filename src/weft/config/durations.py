"""Durations as a word: ``20m``, ``1h30m``, ``2d``."""

import re
from datetime import timedelta
from fractions import Fraction

__all__ = ["format_duration", "parse_duration"]

_UNITS = {
    "d": 86_400_000_000, "h": 3_600_000_000, "m": 60_000_000, "s": 1_000_000, "ms": 1_000, "us": 1,
}  # fmt: skip
_UNIT_WORDS = {
    "day": "d", "days": "d", "hour": "h", "hours": "h", "min": "m", "mins": "m",
    "minute": "m", "minutes": "m",
    "sec": "s", "secs": "s", "second": "s", "seconds": "s",
}  # fmt: skip
_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([a-z]+)")


def parse_duration(text: str) -> timedelta:
    """Reads ``20m``, ``1h30m``, ``2d``, ``15 min``, ``90 seconds``.

    >>> str(parse_duration("1h30m")), str(parse_duration("15 min"))
    ('1:30:00', '0:15:00')

    Raises:
        ValueError: The text is no duration.
    """
    rest = text.strip().lower()
    sign, rest = (-1, rest[1:]) if rest.startswith("-") else (1, rest)
    micros, position = Fraction(0), 0
    while match := _DURATION.match(rest, position):
        unit = _UNIT_WORDS.get(match[2], match[2])
        if unit not in _UNITS:
            break
        micros += Fraction(match[1]) * _UNITS[unit]
        position = match.end()
    if position == 0 or rest[position:].strip():
        raise ValueError(f"wanted a duration like '20m', '1h30m' or '2d', found {text!r}.")
    try:
        return timedelta(microseconds=sign * round(micros))
    except OverflowError as error:
        raise ValueError(f"the duration {text!r} is too long.") from error


def format_duration(value: timedelta) -> str:
    """The shortest text that ``parse_duration`` reads back exactly.

    >>> format_duration(timedelta(minutes=90)), format_duration(timedelta(0))
    ('1h30m', '0s')
    """
    total = value // timedelta(microseconds=1)
    sign, total = ("-", -total) if total < 0 else ("", total)
    parts = []
    for unit, size in _UNITS.items():
        count, total = divmod(total, size)
        if count:
            parts.append(f"{count}{unit}")
    return sign + ("".join(parts) or "0s")
