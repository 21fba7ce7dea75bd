"""Exact match: the share of generated texts that are one of their references."""

from collections.abc import Sequence
from typing import final

from typing_extensions import override

from weft.config import registries
from weft.metrics.averaged import Averaged
from weft.metrics.checks import with_references
from weft.metrics.text_metric import TextMetric

__all__ = ["ExactMatch"]


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
        """Adds generated texts.

        Args:
            texts: One a row.
            references: For each row one or more right texts.

        Raises:
            MetricError: The lengths differ, or a row has no reference; nothing was added then.
        """
        for text, right in with_references(self, texts, references):
            self.add("exact_match", text.split() in [reference.split() for reference in right])
