"""Metrics that hold predicted texts against one or more right ones: their base, exact match."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, final

from typing_extensions import override

from weft.metrics import registries
from weft.metrics.checks import with_references
from weft.metrics.metric import MetricError, RowMetric
from weft.metrics.streaming import Averaged

__all__ = ["ExactMatch", "TextMetric"]


class TextMetric(RowMetric):
    """Base of metrics of texts: BLEU, ROUGE, exact match.

    Of a row it takes the ``prediction``, and what is right: its ``references``, a list, where it
    has such, else the column that ``target`` names.
    """

    class Config(RowMetric.Config):
        """Settings of the metric."""

        target: str = "target"
        """The column of the right text, where rows have no ``references``; of labels ``label``."""

    config: Config

    @abstractmethod
    @override
    def update(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """Adds texts, with one or more right texts of each."""

    @property
    @override
    def columns(self) -> tuple[str, ...]:
        return (self.config.target,)

    @override
    def measure(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows with their predictions; refuses answers, or right ones, that are no texts."""
        target = self.config.target
        texts: list[Any] = [row.get("prediction") for row in rows]
        right: list[Any] = [row.get("references") or [row.get(target)] for row in rows]
        if not all(isinstance(one, str) for many in (texts, *right) for one in many):
            raise MetricError(
                f"{type(self).__name__} compares texts, but of the columns 'prediction' and "
                f"'{target}' (its setting target) one holds others: {texts[:1]} and {right[:1]}."
            )
        self.update(texts, right)


@final
@registries.metrics.register("exact_match")
class ExactMatch(Averaged, TextMetric):
    """Generated texts against one or more references each; ``exact_match`` is from 0 to 1.

    A text is right if it is a reference once runs of white space are one space and those at the
    ends are gone; nothing else is ignored.

    Example:
        >>> metric = ExactMatch.Config().build()
        >>> metric.update(["a  b", "A b"], [["x", "a b "], ["a b"]])
        >>> metric.compute()
        {'exact_match': 0.5}
    """

    class Config(TextMetric.Config):
        """Settings of exact match."""

    config: Config

    def __init__(self, config: Config) -> None:
        self.config = config
        super().__init__({"exact_match": "higher"})

    @override
    def update(self, texts: Sequence[str], references: Sequence[Sequence[str]]) -> None:
        """Adds generated texts, one a row; where a row has no reference, nothing is added."""
        for text, right in with_references(self, texts, references):
            self.add("exact_match", text.split() in [reference.split() for reference in right])
