"""The text processor of ranking: how well a document answers a query."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.text.answers import Answer
from textmill.text.columns.token_ids import TextColumn
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import text_processors


@dataclass(frozen=True)
class Ranked(Answer):
    """How well a document answers a query; ``str()`` writes it with four digits.

    Example:
        >>> print(Ranked(0.75), max([Ranked(0.5), Ranked(0.75)], key=lambda answer: answer.score))
        0.75 0.75
    """

    keys = ("prediction=score", "negative_score=negative?")

    score: float
    """The cosine between the two, from -1 to 1: more is better."""
    negative: float | None = None
    """In an evaluation, the score of the row's wrong document."""

    @override
    def __str__(self) -> str:
        return f"{self.score:.4g}"


@text_processors.register("ranking")
class RankingText(ColumnsText):
    """A query and a document to a score; in training, with a document that is no answer, too.

    In prediction the column ``positive`` is of the document that is asked about.
    """

    answer_class = Ranked
    kind = "ranking"
    kinds = {  # noqa: RUF012  # of the base
        "query": TextColumn,
        "positive": TextColumn,
        "negative": TextColumn,
    }
    target_roles = frozenset({"negative"})
    alike = ("query", "positive", "negative")

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Ranked]:
        """Answers from the cosine of the document, and of the wrong one. *Shape:* ``[1 or 2]``."""
        rows = (np.asarray(row, dtype=np.float64).tolist() for row in outputs)
        return [Ranked(*row) for row in rows]
