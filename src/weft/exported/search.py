"""How an exported model searches its answers: the settings that every graph is run with."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

from weft.exported.manifest import ExportError

__all__ = ["Search"]

LARGEST = 1 << 20
"""Of numbers: no model has as many positions."""
LARGEST_BEAM = 1_000
"""As in training: more would only take memory."""


@dataclass(frozen=True, kw_only=True)
class Search:
    """Settings of a search, as :class:`weft.models.decoding.settings.Decoding` has them.

    Example:
        >>> Search(max_length=64).limit(9)
        28
    """

    beam_size: int = 1
    """Sequences followed at once; 1 is greedy search."""
    n_best: int = 1
    """Hypotheses for a source, at most ``beam_size``."""
    length_penalty: float = 1.0
    """Power of the length that log-probabilities are divided by."""
    early_stopping: str = "heuristic"
    """``first``, ``heuristic`` or ``never``."""
    max_length_a: float = 2.0
    """At most ``max_length_a * S + max_length_b`` ids are generated for a source of S."""
    max_length_b: int = 10
    """See ``max_length_a``."""
    max_length: int
    """Most ids that can be generated: for so many the model has positions."""

    def limit(self, length: int) -> int:
        """The most ids to generate for a source of this many."""
        factor = min(self.max_length_a, float(self.max_length))
        return min(int(factor * length) + min(self.max_length_b, self.max_length), self.max_length)

    def to_json(self) -> dict[str, Any]:
        """As JSON values."""
        return asdict(self)

    @classmethod
    def from_json(cls, values: Mapping[str, Any]) -> "Search":
        """Reads what :meth:`to_json` gave.

        Raises:
            ExportError: It holds something else.
        """
        known = {field.name: field.type for field in fields(cls)}
        if set(values) != set(known):
            odd = ", ".join(sorted(set(values) ^ set(known), key=str))
            raise ExportError(f"the settings of the search are not this weft's: {odd:.200}")
        for name, value in values.items():
            if not _fits(known[name], value):
                raise ExportError(f"the setting '{name}' of the search cannot be {value!r:.80}")
        search = cls(**values)
        positive = ("beam_size", "n_best", "max_length", "max_length_b")
        wrong = [name for name in positive if getattr(search, name) < 1]
        if search.max_length_a < 0:
            wrong.append("max_length_a")
        if search.beam_size > LARGEST_BEAM:
            wrong.append("beam_size")
        if search.n_best > search.beam_size:
            wrong.append("n_best")
        if search.early_stopping not in ("first", "heuristic", "never"):
            wrong.append("early_stopping")
        if wrong:
            name = wrong[0]
            raise ExportError(f"the setting '{name}' of the search cannot be {values[name]!r:.80}")
        return search


def _fits(kind: Any, value: Any) -> bool:
    if kind is str:
        return isinstance(value, str)
    if isinstance(value, bool):
        return False
    if kind is int:
        return isinstance(value, int) and 0 <= value <= LARGEST
    return isinstance(value, int | float) and abs(value) <= LARGEST  # neither infinite nor NaN
