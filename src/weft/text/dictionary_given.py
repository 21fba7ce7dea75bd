"""A dictionary whose findings stand in the rows themselves, as JSON: another program made them."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import DataError, UserError
from weft.text.cells import training_cells
from weft.text.dictionary import Dictionary, Finding

__all__ = ["FittedKinds", "GivenKinds", "kinds_in"]

MOST_WORDS = 1 << 20
"""Places of words; no text of a model has as many, and a float32 still counts them exactly."""
LARGEST = 1e6
"""Of a weight, which is a share or a count: a sum of a million such is finite in a float32."""
EXAMPLE = '[{"tokenIdx": 1, "features": {"drink": 0.8}}]'


class GivenKinds(Dictionary):
    """Kinds of words with their weights, as a column has them.

    A kind that is not known, since no row of the training data had it, says nothing.

    Example:
        >>> given = GivenKinds(["drink", "song"], column="found")
        >>> cell = '[{"tokenIdx": 1, "features": {"drink": 0.8, "song": 0.2, "new": 1}}]'
        >>> [tuple(finding) for finding in given.find(cell, 0)]
        [(1, 1, 0.8), (1, 2, 0.2)]
    """

    @override
    def find(self, value: Any, row: int) -> list[Finding]:
        known = self.numbers
        return [
            Finding(place, known[kind], weight)
            for place, kind, weight in kinds_in(value, self.column, row)
            if kind in known
        ]


@registries.dictionaries.register("given")
class FittedKinds(Component):
    """The kinds of words that a column of ``train_data`` has as JSON."""

    class Config(BaseConfig):
        """Where the findings are."""

        column: str = "dictionary"
        """The column: ``[{"tokenIdx": 1, "features": {"drink": 0.8, "song": 0.2}}]``, a word's
        place from 0 and its kinds with their weights; empty where nothing is known."""
        min_count: int = 1
        """How often a kind must occur; a rarer one says nothing."""

        def __post_init__(self) -> None:
            """Refuses what counts nothing."""
            if self.min_count < 1:
                raise UserError(f"dictionary.min_count must be 1 or more, but is {self.min_count}.")

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> GivenKinds:
            """Reads the rows once.

            Raises:
                DataError: A row has no such column, or what cannot be read, or no row has a kind.
            """
            counts: dict[str, int] = {}
            cells = training_cells(
                train_data,
                self.column,
                purpose="to take kinds of words from",
                remedy="Name the column by dictionary.column.",
            )
            for row, cell in cells:
                for _, kind, _ in kinds_in(cell, self.column, row):
                    counts[kind] = counts.get(kind, 0) + 1
            kept = [kind for kind, count in counts.items() if count >= self.min_count]
            if not kept:
                raise DataError(
                    f"No row of train_data has a kind of a word in its column '{self.column}' that "
                    f"occurs {self.min_count} times."
                )
            return GivenKinds(kept, column=self.column)

    def __init__(self, config: Config) -> None:
        self.config = config


def kinds_in(value: Any, column: str, row: int) -> list[tuple[int, str, float]]:
    """Places, kinds and weights in one cell, by rising place.

    The list may stand in ``{"tokenFeatList": [...]}``, as some files of PyText have it.

    Args:
        value: JSON, or what it stands for.
        column: Name of the column, for the error.
        row: Number of the row, for the error.

    Raises:
        DataError: There is something else, or a word is there twice.

    Example:
        >>> kinds_in('[{"tokenIdx": 1, "features": {"drink": 0.8}}]', "found", 0)
        [(1, 'drink', 0.8)]
        >>> kinds_in("", "found", 0)
        []
    """
    items = _parsed(value, column, row)
    by_place: dict[int, Mapping[str, Any]] = {}
    for item in items:
        if not isinstance(item, Mapping) or set(item) != {"tokenIdx", "features"}:
            raise _wanted(f"the keys tokenIdx and features, as in {EXAMPLE}", item, column, row)
        place, features = item["tokenIdx"], item["features"]
        if type(place) is not int or not 0 <= place < MOST_WORDS:
            raise _wanted("the place of a word from 0 as tokenIdx", place, column, row)
        if not isinstance(features, Mapping):
            raise _wanted("kinds with their weights as features", features, column, row)
        if place in by_place:
            raise _wanted("each word once", f"tokenIdx {place} again", column, row)
        by_place[place] = features
    return [
        (place, kind, _weight(weight, kind, column, row))
        for place in sorted(by_place)
        for kind, weight in by_place[place].items()
    ]


def _parsed(value: Any, column: str, row: int) -> list[Any]:
    found = value
    if isinstance(value, str):
        try:
            found = json.loads(value) if value.strip() else []
        except (ValueError, RecursionError):
            raise _wanted(f"JSON as {EXAMPLE}", value, column, row) from None
    if isinstance(found, Mapping) and set(found) == {"tokenFeatList"}:
        found = found["tokenFeatList"]
    if not isinstance(found, list):
        raise _wanted(f"a list as {EXAMPLE}", value, column, row)
    return found


def _weight(value: Any, kind: Any, column: str, row: int) -> float:
    if not isinstance(kind, str) or not kind.strip():
        raise _wanted("a kind's name", kind, column, row)
    fits = isinstance(value, int | float) and not isinstance(value, bool)
    if not fits or not abs(value) <= LARGEST:
        raise _wanted(f"a number as the weight of {kind!r:.80}", value, column, row)
    return float(value)


def _wanted(wanted: str, found: Any, column: str, row: int) -> DataError:
    return DataError(f"Row {row}, column '{column}': wanted {wanted}, found {found!r:.80}.")
