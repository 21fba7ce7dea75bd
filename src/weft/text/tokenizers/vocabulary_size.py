"""How many pieces a vocabulary has: as many as are asked for, or all that a text gives."""

import logging
from collections.abc import Callable

from weft.errors import UserError

__all__ = ["TooLargeVocabularyError", "fit_at_most", "refuse_huge"]

MOST = 1 << 22
"""Pieces; the largest multilingual vocabularies have a million."""
_log = logging.getLogger(__name__)


class TooLargeVocabularyError(UserError):
    """A text gives fewer pieces than were asked for.

    Args:
        vocab_size: The pieces that were asked for, special ones included.
        largest: The most that the text gives.

    Example:
        >>> TooLargeVocabularyError(5000, 162).largest
        162
    """

    def __init__(self, vocab_size: int, largest: int) -> None:
        super().__init__(
            f"vocab_size={vocab_size} is too large for the training text, which gives at most "
            f"{largest} pieces. Set vocab_size to {largest} or less, or train on more text."
        )
        self.largest = largest


def refuse_huge(vocab_size: int) -> None:
    """Refuses more pieces than any vocabulary has: their memory is taken before a text is read.

    Example:
        >>> refuse_huge(10**10)
        Traceback (most recent call last):
        weft.errors.UserError: vocab_size must be at most 4,194,304, but is 10,000,000,000.
    """
    if vocab_size > MOST:
        raise UserError(f"vocab_size must be at most {MOST:,}, but is {vocab_size:,}.")


def fit_at_most(fit: Callable[[int], None], vocab_size: int) -> None:
    """Fits a vocabulary of some pieces, or of all that its text gives, which a line then says.

    Args:
        fit: Fits a vocabulary of so many pieces; called a second time where there are fewer.
        vocab_size: The most pieces, special ones included.

    Example:
        >>> def fit(vocab_size):
        ...     if vocab_size > 162:
        ...         raise TooLargeVocabularyError(vocab_size, 162)
        ...     print(vocab_size, "pieces")
        >>> fit_at_most(fit, 5000)
        162 pieces
    """
    try:
        fit(vocab_size)
    except TooLargeVocabularyError as error:
        _log.info(
            "the training text gives %s pieces, fewer than vocab_size=%s: all are taken",
            f"{error.largest:,}",
            f"{vocab_size:,}",
        )
        fit(error.largest)
