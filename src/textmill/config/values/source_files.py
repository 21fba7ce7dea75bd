"""Scripts and files of settings, read only if reading ends: no pipe, no device."""

from pathlib import Path
from stat import S_ISREG

from textmill.config.registry import suggest_path
from textmill.errors import UserError


def read_source(path: Path, most: int | None = None) -> bytes:
    """The bytes of a regular file, or of a pipe that the shell hands over (``<(command)``).

    Args:
        path: The file. A pipe of that name in a run folder would never end.
        most: Read no more than this many bytes; None: all.

    Raises:
        UserError: It cannot be read.

    Example:
        >>> read_source(Path("/"))
        Traceback (most recent call last):
        textmill.errors.UserError: /: cannot be read: it is not a regular file.
    """
    try:
        if not (S_ISREG(path.stat().st_mode) or path.is_relative_to("/dev")):
            raise UserError(f"{path}: cannot be read: it is not a regular file.")
        with path.open("rb") as file:
            return file.read(-1 if most is None else most)
    except OSError as error:
        near = "" if path.exists() else suggest_path(path, suffixes=(".yaml", ".yml", ".py"))
        raise UserError(f"{path}: cannot be read: {error.strerror}. {near}".rstrip()) from error
