"""Base of the metrics that are a mean over rows, of sums that do not round."""

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, final

from typing_extensions import override

from weft.metrics.checks import check_state
from weft.metrics.metric import Direction, Metric, State
from weft.metrics.streaming import Mean

__all__ = ["Averaged"]


class Averaged(Metric):
    """Base of metrics that are means of one number a row; without a row: NaN.

    Args:
        directions: The names of the values, and which are better.
        settings: What decides how is measured, as plain JSON: only states of equal ones are added.
    """

    def __init__(
        self, directions: Mapping[str, Direction], settings: Mapping[str, Any] | None = None
    ) -> None:
        self._directions, self._settings = dict(directions), dict(settings or {})
        self.reset()

    @final
    @override
    def reset(self) -> None:
        self._means = {name: Mean(name) for name in self._directions}

    @final
    def add(self, name: str, value: float) -> None:
        """Adds the number of one row to the mean ``name``."""
        self._means[name].update(value, 1)

    @final
    @override
    def compute(self) -> dict[str, float]:
        return {name: mean.quotient() for name, mean in self._means.items()}

    @final
    @override
    def directions(self) -> Mapping[str, Direction]:
        return dict(self._directions)

    @final
    @override
    def state_dict(self) -> State:
        means = {name: mean.state_dict() for name, mean in self._means.items()}
        return {"settings": dict(self._settings), "means": means}

    @final
    @override
    def merge_state(self, state: Mapping[str, Any]) -> None:
        check_state(self, state, self._settings, "means")
        for name, mean in self._means.items():
            mean.merge_state(state["means"][name])

    @abstractmethod
    @override
    def update(self, *args: Any, **kwargs: Any) -> None: ...
