"""Limits of a server, and the error of requests beyond them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any

from typing_extensions import override

from textmill.errors import UserError


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a server takes at most; each is an option of ``textmill serve``, its line the help."""

    body: int = 1 << 20
    """Bytes of a request's body; more is answered 413, and not read."""
    file: int = 20 << 20
    """Bytes of a table, or of a file for a pipeline; more is answered 413, and not read."""
    files: int = 8
    """Tables and files that are answered at once; one more is answered 503, and not read."""
    items: int = 256
    """Rows of a request; more is answered 413, as a longer body is: ask in parts."""
    characters: int = 100_000
    """Characters of a text; more is answered 422, of a table's row by its error."""
    beam: int = 16
    """The largest ``n_best`` and ``beam_size`` that a request may ask for; more is answered 400."""
    queue: int = 128
    """Rows that wait for the model; a request that finds as many is answered 503."""
    batch: int = 64
    """Rows that are answered together, where as many wait."""
    window: float = 0.005
    """Seconds that a batch waits, at most, for as many rows as the last batch had."""
    timeout: float = 30.0
    """Seconds from a request's last byte to its answer; later it is answered 503. A body that takes
    as long to come is answered 408."""
    connections: int = 1_000
    """Connections at once, and requests that begin and end at once; one more is answered 503."""

    def __post_init__(self) -> None:
        for limit in fields(self):
            value = getattr(self, limit.name)
            if not (value > 0 or (limit.name == "window" and value == 0)):
                option = limit.name.replace("_", "-")
                wanted = "0 or above" if limit.name == "window" else "above 0"
                raise UserError(f"--{option} is a number {wanted}; found {value}.")


class RefusedError(Exception):
    """A request that is refused, and ``where``: ``body``, ``row 3``, a header."""

    def __init__(
        self, status: int, message: str, *, where: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status, self.where, self.headers = status, where, dict(headers or {})

    @override
    def __str__(self) -> str:
        return f"{self.status}: {self.args[0]}"

    def to_json(self) -> dict[str, Any]:
        """The answer's body."""
        return {"error": self.args[0], "where": self.where}
