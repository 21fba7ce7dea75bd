"""What a person sees of an error: the message of weft's own, one paragraph of any other."""

import sys
import traceback
from pathlib import Path

import weft
from weft.errors import WeftError

__all__ = ["report"]


def report(error: Exception) -> int:
    """Prints the error to stderr without a traceback and returns the exit code."""
    notes = getattr(error, "__notes__", [])
    if isinstance(error, WeftError):
        print("\n".join([f"error: {error}", *(f"  {note}" for note in notes)]), file=sys.stderr)
        return error.exit_code
    text = f"error: {type(error).__name__}: {error}"
    lines = [text.rstrip(": "), *(f"  {note}" for note in notes)]
    place = _place(error)
    if place:
        lines.append(f"  raised at {place}")
    blame = "an error in the recipe" if notes else "a bug in weft, or an error in the recipe"
    lines.append(f"  This is {blame}; --debug shows the traceback.")
    print("\n".join(lines), file=sys.stderr)
    return 1


def _place(error: Exception) -> str:
    """The innermost line outside of the library and installed packages, else the innermost."""
    frames = traceback.extract_tb(error.__traceback__)
    library = Path(weft.__file__).resolve().parent
    own = [
        frame
        for frame in frames
        if not Path(frame.filename).resolve().is_relative_to(library)
        and "site-packages" not in frame.filename
        and Path(frame.filename).suffix == ".py"
        and not Path(frame.filename).resolve().is_relative_to(Path(traceback.__file__).parent)
        and Path(frame.filename).parent.name != "bin"
    ]
    chosen = (own or list(frames))[-1:]
    return f"{chosen[0].filename}:{chosen[0].lineno}" if chosen else ""
