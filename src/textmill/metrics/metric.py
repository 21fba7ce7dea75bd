"""A metric: what is added to it in batches comes out as named values.

Nothing here knows tasks, batches or the trainer.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from typing_extensions import override

from textmill.config.component import Component, refuse_other_methods
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError

Direction = Literal["higher", "lower"]
"""Which values are better."""


class MetricError(UserError):
    """A metric was given something that it cannot count."""


class Metric(ABC):
    """Base of all metrics.

    With several ranks the answers of all are added on the first, which computes the values once.
    Their order is not that of one rank: ``compute`` of our own gives the same bits in every order,
    since they keep integers, rows that they sort, or sums that do not round.

    Example:
        >>> from collections.abc import Mapping
        >>> class Longest(Metric):
        ...     longest = 0
        ...
        ...     def update(self, text: str) -> None:
        ...         self.longest = max(self.longest, len(text))
        ...
        ...     def compute(self) -> dict[str, float]:
        ...         return {"longest": float(self.longest)}
        ...
        ...     def directions(self) -> Mapping[str, Direction]:
        ...         return {"longest": "lower"}
        >>> metric = Longest()
        >>> metric.update("warp")
        >>> metric.update("textmill and warp")
        >>> metric.compute()
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

    @override
    def update(self, *args: Any, **kwargs: Any) -> None:
        """As :meth:`measure`."""
        self.measure(*args, **kwargs)
