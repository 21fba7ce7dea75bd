"""A metric: what is added to it in batches comes out as named values.

Nothing here knows tasks, batches or the trainer.
"""

import math
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from typing import Any, Literal, TypeVar

from typing_extensions import override

from textmill.config.component import Component, refuse_other_methods
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError

Count = int | Fraction
"""A number of rows or words, of which each may count in part."""
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

    weight: Count = 1
    """How often each row counts that is added now. Metrics that count rows or words, or are means
    of them, go by it; those of ranks and of whole texts (BLEU, chrF) do not."""

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


class HigherIsBetter(Metric):
    """Base of metrics whose values are all the better the higher they are."""

    @override
    def directions(self) -> Mapping[str, Direction]:
        return dict.fromkeys(self.compute(), "higher")


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
        self.measure(*args, **kwargs)


_A = TypeVar("_A")
_B = TypeVar("_B")


def _brief(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 200 else f"{text[:200]}..."


def aligned(metric: Metric, gold: Sequence[_A], predicted: Sequence[_B]) -> Iterator[tuple[_A, _B]]:
    """The rows of both, side by side; refuses a bare string, and what differs in length."""
    name = type(metric).__name__
    for given in (gold, predicted):
        if isinstance(given, str):
            raise MetricError(
                f"{name} needs a list with an entry per row, but was given the string "
                f"{_brief(given)}."
            )
    if len(gold) != len(predicted):
        raise MetricError(
            f"{name} needs what is right and what was predicted for the same rows, "
            f"but was given {len(gold)} and {len(predicted)} of them."
        )
    return zip(gold, predicted, strict=True)


def distinct_labels(metric: Metric, labels: Sequence[str]) -> tuple[str, ...]:
    """The labels, one or more; refuses none, and one that stands there twice."""
    if isinstance(labels, str) or not labels:
        found = f"the string {_brief(labels)}" if isinstance(labels, str) and labels else "none"
        raise MetricError(
            f"{type(metric).__name__} needs a list of the labels, but was given {found}."
        )
    twice = [label for label, n in Counter(labels).items() if n > 1]
    if twice:
        raise MetricError(
            f"{type(metric).__name__} needs each label once, but has twice: {_brief(twice)}."
        )
    return tuple(labels)


def nan_without(count: Count, values: Mapping[str, float]) -> dict[str, float]:
    """The values, or NaN for each where nothing was counted."""
    return dict(values) if count else dict.fromkeys(values, math.nan)


def share_of(part: Count, whole: Count) -> float:
    """The share, rounded once; 0 of nothing."""
    return float(part / whole) if whole else 0.0


def share_error(share: float, count: Count | float) -> float:
    """The standard error of a share of so many: ``sqrt(p (1 - p) / n)``; 0 without any.

    Example:
        >>> share_error(0.9, 100)
        0.03
    """
    if not count or not 0 <= share <= 1:
        return 0.0
    return math.sqrt(share * (1 - share) / count)


def with_references(
    metric: Metric, texts: Sequence[str], references: Sequence[Sequence[str]]
) -> list[tuple[str, Sequence[str]]]:
    """The texts, each with its references; refuses a text with none or with a bare string."""
    rows = list(aligned(metric, texts, references))
    for row, (_, right) in enumerate(rows):
        if isinstance(right, str) or not right:
            found = f"the string {_brief(right)}" if isinstance(right, str) else "none"
            raise MetricError(
                f"{type(metric).__name__} needs a list of one or more references for each text, "
                f"but text {row + 1} of {len(rows)} has {found}."
            )
    return rows
