"""Base of the metrics that follow from whole numbers, which add up in any order."""

from collections import Counter
from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from weft.metrics.checks import check_state
from weft.metrics.metric import Metric, State

__all__ = ["Counted"]


class Counted(Metric):
    """Base of metrics that follow from whole numbers, each under a group and a name in it.

    Args:
        settings: What decides how is counted, as plain JSON: only states of equal ones are added.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = dict(settings)
        self.reset()

    @final
    @override
    def reset(self) -> None:
        self._counts: dict[str, Counter[str]] = {}

    @final
    def add(self, counts: Mapping[str, Mapping[str, int]]) -> None:
        """Adds counts, by group and name."""
        for group, numbers in counts.items():
            self._counts.setdefault(group, Counter()).update(numbers)

    @final
    def counts(self, group: str) -> Mapping[str, int]:
        """The counts of a group by name, a missing one being 0."""
        return self._counts.get(group, Counter())

    @final
    @override
    def state_dict(self) -> State:
        counts = {
            group: {name: n for name, n in sorted(numbers.items()) if n}
            for group, numbers in sorted(self._counts.items())
        }
        return {
            "settings": dict(self._settings),
            "counts": {group: numbers for group, numbers in counts.items() if numbers},
        }

    @final
    @override
    def merge_state(self, state: Mapping[str, Any]) -> None:
        check_state(self, state, self._settings, "counts")
        self.add(state["counts"])
