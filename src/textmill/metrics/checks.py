"""What metrics of rows and labels refuse: lengths that differ, doubled labels."""

import math
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import TypeVar

from textmill.metrics.metric import Metric, MetricError

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


def nan_without(count: int, values: Mapping[str, float]) -> dict[str, float]:
    """The values, or NaN for each where nothing was counted."""
    return dict(values) if count else dict.fromkeys(values, math.nan)


def share_error(share: float, count: float) -> float:
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
