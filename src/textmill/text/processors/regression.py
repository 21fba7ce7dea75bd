"""Text processors whose answer is a number."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.text.answers import Answer
from textmill.text.columns.inputs import BESIDE_TEXT, TEXT_KINDS
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import text_processors


@dataclass(frozen=True)
class Estimated(Answer):
    """The number of a text; ``str()`` writes it with four digits.

    Example:
        >>> print(Estimated(3.80001))
        3.8
    """

    keys = ("prediction=number",)

    number: float
    """In the units of the training data."""

    @override
    def __str__(self) -> str:
        return f"{self.number:.4g}"


class NumberText(ColumnsText):
    """Base of text processors whose answer is a number: the target ``number``."""

    answer_class = Estimated

    target_roles = frozenset({"number"})

    @property
    def number(self) -> NumberColumn:
        """The column of the number."""
        column = self.targets["number"]
        assert isinstance(column, NumberColumn)
        return column

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Estimated]:
        """Answers from one number for each row, as ``encode`` gives it."""
        numbers = (float(np.asarray(output, dtype=np.float64).item()) for output in outputs)
        return [Estimated(self.number.restored(number)) for number in numbers]


@text_processors.register("regression")
class RegressionText(NumberText):
    """Text, and what stands beside it, to a number."""

    kind = "regression"
    kinds = {**TEXT_KINDS, "number": NumberColumn}  # noqa: RUF012  # of the base
    optional = BESIDE_TEXT


@text_processors.register("pair_number")
class PairNumberText(NumberText):
    """Two texts to a number."""

    kind = "pair_number"
    kinds = {  # noqa: RUF012  # of the base
        "text1": TextColumn,
        "text2": TextColumn,
        "number": NumberColumn,
    }
    alike = ("text1", "text2")
