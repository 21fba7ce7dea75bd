"""What a person sees of an error: the message of textmill's own, one paragraph of any other."""

import os
import sys

from textmill.errors import OtherRankError, TextmillError, raised_at
from textmill.runtime.logging import printable


def report(error: Exception) -> int:
    """Prints the error to stderr without a traceback and returns the exit code."""
    if isinstance(error, OtherRankError):
        return error.exit_code  # the rank that had the error first says it
    notes = [f"  {note}" for note in getattr(error, "__notes__", [])]
    if isinstance(error, TextmillError):
        lines = [f"error: {error}", *notes]
    elif isinstance(error, OSError) and isinstance(error.filename, str | bytes):
        # Of a file or folder of the person's own, which the system does not let textmill use.
        lines = [f"error: {os.fsdecode(error.filename):.300}: {error.strerror}.", *notes]
    else:
        lines = [f"error: {type(error).__name__}: {error}".rstrip(": "), *notes]
        if place := raised_at(error):
            lines.append(f"  raised at {place}")
        blame = (
            "an error in the recipe" if notes else "a bug in textmill, or an error in the recipe"
        )
        lines.append(f"  This is {blame}; --debug shows the traceback.")
    print(printable("\n".join(lines)), file=sys.stderr)
    return error.exit_code if isinstance(error, TextmillError) else 1
