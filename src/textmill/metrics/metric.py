"""A metric: numbers that stream in, merge exactly, and come out as named values.

Nothing here knows tasks, batches or the trainer.
"""

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal, final

from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.own_methods import refuse_other_methods
from textmill.errors import UserError

Direction = Literal["higher", "lower"]
"""Which values are better."""

State = dict[str, Any]
"""Plain JSON: strings, integers, finite floats, booleans, None, lists and dictionaries of them."""


class MetricError(UserError):
    """A metric was given something it cannot count, or a state that is not its own."""


class Metric(ABC):
    """Base of all metrics.

    Whatever the split of the data into updates, ranks or saved states, ``compute`` gives the same
    bits as one pass over everything: an implementation keeps integers, or sums that do not round.
    Memory does not grow with the number of rows, but in metrics of ranks, which need the rows and
    keep them up to a stated limit.

    Example:
        >>> from collections.abc import Mapping
        >>> class Longest(Metric):
        ...     def __init__(self):
        ...         self.reset()
        ...
        ...     def update(self, text: str) -> None:
        ...         self.longest = max(self.longest, len(text))
        ...
        ...     def compute(self) -> dict[str, float]:
        ...         return {"longest": float(self.longest)}
        ...
        ...     def directions(self) -> Mapping[str, Direction]:
        ...         return {"longest": "lower"}
        ...
        ...     def reset(self) -> None:
        ...         self.longest = 0
        ...
        ...     def state_dict(self) -> State:
        ...         return {"longest": self.longest}
        ...
        ...     def merge_state(self, state: Mapping[str, Any]) -> None:
        ...         self.longest = max(self.longest, state["longest"])
        >>> ours, theirs = Longest(), Longest()
        >>> ours.update("warp"), theirs.update("textmill and warp")
        (None, None)
        >>> ours.merge(theirs)
        >>> ours.compute()
        {'longest': 17.0}
    """

    @override
    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        refuse_other_methods(cls)

    @abstractmethod
    def update(self, *args: Any, **kwargs: Any) -> None:
        """Adds a batch; the arguments are each metric's own."""

    @abstractmethod
    def compute(self) -> dict[str, float]:
        """The values by name, of all that was added so far (NaN without any); changes nothing."""

    @abstractmethod
    def directions(self) -> Mapping[str, Direction]:
        """For each name that ``compute`` gives, which values are better."""

    def errors(self) -> dict[str, float]:
        """The standard errors of values by name, of those whose error is known; often none.

        A selection takes evaluations within one for equally good.
        """
        return {}

    def details(self) -> dict[str, str]:
        """What is needed to repeat a value (a signature), by its name; often nothing."""
        return {}

    @abstractmethod
    def reset(self) -> None:
        """Forgets everything that was added."""

    @abstractmethod
    def state_dict(self) -> State:
        """Everything that was added, as plain JSON."""

    @abstractmethod
    def merge_state(self, state: Mapping[str, Any]) -> None:
        """Adds what another metric of the same settings has seen, from its ``state_dict``.

        Ranks exchange these states; the order in which they are added changes nothing.
        """

    @final
    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Becomes what ``state`` describes; a state that does not fit leaves the metric empty."""
        self.reset()
        self.merge_state(state)

    @final
    def merge(self, other: "Metric") -> None:
        """Adds what ``other`` has seen; ``other`` stays as it is.

        Raises:
            MetricError: ``other`` is a metric of another kind, or has other settings.
        """
        if type(other) is not type(self):
            raise MetricError(
                f"A {type(self).__name__} can only be merged with a {type(self).__name__}, "
                f"but was given a {type(other).__name__}."
            )
        self.merge_state(copy.deepcopy(other.state_dict()))


class RowMetric(Metric, Component):
    """Base of metrics that a recipe adds to those of its task, by ``task.metrics``.

    It sees each row of an evaluation with its answer, as a file of predictions has it: the columns
    of the data, ``prediction``, and what else the task tells of an answer. A value of a name that
    the task measures itself takes the place of the task's.
    """

    class Config(BaseConfig):
        """Settings of the metric."""

    config: Any

    def __init__(self, config: Config) -> None:
        self.config = config

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns of the data that it reads beside the prediction; looked for at the start."""
        return ()

    @abstractmethod
    def measure(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows with their answers."""
