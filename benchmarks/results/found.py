"""What a measurement gives: figures, or why there are none."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


class FailedError(Exception):
    """A process that measures ended with an error; the text says which."""


@dataclass(frozen=True)
class Found:
    """Figures of the dev file, as the ledger keeps them."""

    values: Mapping[str, float]
    """By the names that textmill has for them."""
    standard_errors: Mapping[str, float]
    """0 where there are no rows to draw anew."""
    details: Mapping[str, Any] = field(default_factory=dict)
    """What else is to be known."""
