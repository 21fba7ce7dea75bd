"""Objects that can be read only once, where they would be read again: empty, and nobody said so."""

from collections.abc import Iterator

from weft.errors import DataError

__all__ = ["read_once", "refuse_read_once"]


def read_once(value: object, what: str) -> str:
    """Why a generator and the like cannot be taken; nothing of other objects.

    Example:
        >>> read_once(iter([]), "train_data")[:46]
        'train_data is a list_iterator, which can be re'
        >>> read_once([], "train_data")
        ''
    """
    if not isinstance(value, Iterator):
        return ""
    return (
        f"{what} is a {type(value).__name__}, which can be read only once, but training reads it "
        "in every epoch. Give a list, or an object whose __iter__ starts anew."
    )


def refuse_read_once(value: object, what: str) -> None:
    """Refuses an object that would be empty when it is read again.

    Raises:
        DataError: It is an iterator.
    """
    if why := read_once(value, what):
        raise DataError(why)
