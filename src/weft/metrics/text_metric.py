"""Base of metrics that hold predicted texts against one or more right ones."""

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from weft.metrics.metric import MetricError, RowMetric

__all__ = ["TextMetric"]


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
        """The column of the right text."""
        return (self.config.target,)

    @override
    def measure(self, rows: Sequence[Mapping[str, Any]]) -> None:
        """Adds rows with their predictions.

        Raises:
            MetricError: Their answers, or what is right, are no texts.
        """
        target = self.config.target
        texts: list[Any] = [row.get("prediction") for row in rows]
        right: list[Any] = [row.get("references") or [row.get(target)] for row in rows]
        if not all(isinstance(one, str) for many in (texts, *right) for one in many):
            raise MetricError(
                f"{type(self).__name__} compares texts, but of the columns 'prediction' and "
                f"'{target}' (its setting target) one holds others: {texts[:1]} and {right[:1]}."
            )
        self.update(texts, right)
