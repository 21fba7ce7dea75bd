"""The text processor of regression: text, and numbers beside it, to one number."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from weft.text.columns.inputs import BESIDE_TEXT, TEXT_KINDS, text_inputs
from weft.text.columns.numbers import NumberColumn, Numbers
from weft.text.features.dictionaries import Dictionary
from weft.text.processors.column_processor import ColumnsText, fitted_with
from weft.text.processors.text_processor import text_processors
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["Estimated", "NumberText", "RegressionText"]


@dataclass(frozen=True)
class Estimated:
    """The number of a text; ``str()`` writes it with four digits.

    Example:
        >>> print(Estimated(3.80001))
        3.8
    """

    number: float
    """In the units of the training data."""

    @override
    def __str__(self) -> str:
        return f"{self.number:.4g}"


class NumberText(ColumnsText):
    """Base of text processors whose answer is a number: the target ``number``."""

    @property
    def number(self) -> NumberColumn:
        """The column of the number."""
        column = self.targets["number"]
        assert isinstance(column, NumberColumn)
        return column

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Estimated]:
        """Answers from one number for each row, as ``encode`` gives it."""
        return [
            Estimated(self.number.restored(float(np.asarray(output, dtype=np.float64).item())))
            for output in outputs
        ]


@text_processors.register("regression")
class RegressionText(NumberText):
    """Text to a number.

    Args:
        tokenizer: Encodes the text.
        column: The column of the text.
        number: The column of the number.
        max_length: Most tokens of a text; None is no limit.
        dense: Numbers beside the text; None: there are none.
        dictionary: What is known of words; None: nothing is.
        ngrams: Knows the n-grams of texts; None: the model looks at none.

    Raises:
        UserError: There is a dictionary, but the tokenizer's tokens are no words.
    """

    kind = "regression"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        **TEXT_KINDS,
        "number": (NumberColumn,),
    }
    optional = BESIDE_TEXT

    def __init__(
        self,
        tokenizer: Tokenizer,
        number: NumberColumn,
        *,
        column: str = "text",
        max_length: int | None = None,
        dense: Numbers | None = None,
        dictionary: Dictionary | None = None,
        ngrams: Tokenizer | None = None,
    ) -> None:
        inputs = text_inputs(
            tokenizer,
            column=column,
            max_length=max_length,
            dense=dense,
            dictionary=dictionary,
            ngrams=ngrams,
        )
        super().__init__(inputs, {"number": number})

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "RegressionText":
        columns = cls.load_columns(folder, settings)
        text, number = columns["text"], columns["number"]
        assert isinstance(number, NumberColumn)
        fitted = fitted_with(columns)
        return cls(**fitted, number=number, column=text.name, max_length=text.limit)
