"""Text from files on its way to a person: what a terminal would obey is shown instead."""

import re

__all__ = ["printable"]

_CONTROLS = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")
"""All but tab and line feed: a carriage return hides what stands before it."""


def printable(text: str) -> str:
    r"""The text with its control characters and lone surrogates as escapes.

    Labels, errors and names of files may come from a stranger; an escape sequence in one of them
    could clear the screen, rename the window or hide a line.

    Example:
        >>> print(printable("ham\x1b[2J"))
        ham\x1b[2J
    """
    return _CONTROLS.sub(lambda found: ascii(found[0])[1:-1], text)
