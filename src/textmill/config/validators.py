"""What numbers and rows of a Config must be, said in the same words for every component."""

import math
from collections.abc import Callable, Iterable, Iterator

from textmill.errors import DataError, UserError


def require(
    config: object,
    where: str = "",
    *,
    sizes: Iterable[str] = (),
    positive: Iterable[str] = (),
    not_negative: Iterable[str] = (),
    shares: Iterable[str] = (),
) -> None:
    """Refuses settings with which a component cannot work.

    A setting that is None is left to who fills it; of one with several numbers each is looked at.

    Args:
        config: The settings, a Config or part of one, as in their own ``__post_init__``.
        where: What they are of, for the message, such as ``model``; empty where many have such.
        sizes: Names of settings that must be at least 1.
        positive: Of those that must be above 0, and finite.
        not_negative: Of those that must be at least 0, and finite.
        shares: Of those that must be from 0 to below 1, as probabilities of dropping something.

    Raises:
        UserError: With the name, what is wanted, and what it is.
    """
    limits: tuple[tuple[Iterable[str], Callable[[float], bool], str], ...] = (
        (sizes, lambda x: x >= 1, "at least 1"),
        (positive, lambda x: 0 < x < math.inf, "positive"),
        (not_negative, lambda x: 0 <= x < math.inf, "at least 0"),
        (shares, lambda x: 0 <= x < 1, "from 0 to below 1"),
    )
    for names, fits, wanted in limits:
        for name in names:
            value = getattr(config, name)
            numbers = value if isinstance(value, tuple) else (value,)
            if value is not None and not all(fits(number) for number in numbers):
                path = f"{where}.{name}" if where else name
                raise UserError(f"{path} must be {wanted}, but is {value}.")


def read_once(value: object, what: str) -> str:
    """Why a generator and the like cannot be taken; nothing of other objects."""
    if not isinstance(value, Iterator):
        return ""
    return (
        f"{what} is a {type(value).__name__}, which can be read only once, but training reads it "
        "in every epoch. Give a list, or an object whose __iter__ starts anew."
    )


def refuse_read_once(value: object, what: str) -> None:
    """Refuses an object that would be empty when it is read again."""
    if why := read_once(value, what):
        raise DataError(why)
