"""The token that a request has to know, read from a file that nobody else can read."""

import os
import re
from pathlib import Path

from textmill.errors import UserError
from textmill.runtime.files import opened

LONGEST, SHORTEST = 4096, 16
TOKEN = re.compile(r"[A-Za-z0-9._~+/-]+=*")
"""What a header can carry (RFC 6750)."""


def read_token(path: Path) -> str:
    """The token in a file: its only line.

    Raises:
        UserError: The file cannot be read, others can read it, or it has no such line.
    """
    how = 'Make one: python -c "import secrets; print(secrets.token_urlsafe())"'

    def refuse(reason: str) -> UserError:
        return UserError(f"The token's file cannot be used: {reason}. {how}")

    with opened(path, refuse, name=str(path), links=True) as (file, _):
        mode = os.fstat(file.fileno()).st_mode
        if mode & 0o077:
            raise UserError(
                f"{path} is not only yours to read (its mode is {mode & 0o777:o}). "
                f"Make it so: chmod 600 {path}"
            )
        text = file.read(LONGEST + 1).decode("utf-8", errors="replace").strip()
    if not TOKEN.fullmatch(text) or not SHORTEST <= len(text) <= LONGEST:
        raise refuse(
            f"{path}: wanted one line of {SHORTEST} letters and digits or more; "
            f"found {len(text):,} characters"
        )
    return text
