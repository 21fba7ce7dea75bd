"""The processor of classification: text, and numbers beside it, to labels with probabilities."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from weft.text.columns.inputs import BESIDE_TEXT, TEXT_KINDS, text_inputs
from weft.text.columns.labels import LabelColumn, LabelsColumn, label_column
from weft.text.columns.numbers import Numbers
from weft.text.features.dictionaries import Dictionary
from weft.text.features.labels import Labels
from weft.text.processors.column_processor import ColumnsText, fitted_with
from weft.text.processors.text_processor import text_processors
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["ClassificationText", "Classified", "LabelText"]


@dataclass(frozen=True)
class Classified:
    """The label, or labels, of a text; ``str()`` gives them.

    Example:
        >>> print(Classified("spam", 0.98, {"ham": 0.02, "spam": 0.98}))
        spam
    """

    label: str
    """The most probable label; several, where a text can have them, with commas between."""
    score: float
    """Its probability; of several labels, of no label, that of the least certain decision."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """The probability of every label."""
    labels: tuple[str, ...] = ()
    """The labels, where a text can have several or none."""

    @override
    def __str__(self) -> str:
        return self.label


class LabelText(ColumnsText):
    """Base of text processors whose answer is a label, or several: the target ``label``."""

    @property
    def label(self) -> LabelColumn | LabelsColumn:
        """The column of the labels."""
        column = self.targets["label"]
        assert isinstance(column, LabelColumn | LabelsColumn)
        return column

    @property
    def multiple(self) -> bool:
        """Whether a text can have several labels, or none."""
        return isinstance(self.label, LabelsColumn)

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Classified]:
        """Answers from the probabilities of all labels. *Shape:* ``[L]`` for each row."""
        names = self.label.labels.names
        return [self._answer(np.asarray(row, dtype=np.float64), names) for row in outputs]

    def _answer(self, row: Any, names: tuple[str, ...]) -> Classified:
        scores = dict(zip(names, row.tolist(), strict=True))
        if not self.multiple:
            best = names[int(row.argmax())]
            return Classified(best, scores[best], scores)
        found = tuple(name for name in names if scores[name] > 0.5)
        certain = float(np.maximum(row, 1 - row).min())
        return Classified(", ".join(found), certain, scores, found)


@text_processors.register("classification")
class ClassificationText(LabelText):
    """Text to a label, or to several.

    Args:
        tokenizer: Encodes the text.
        labels: The labels there are.
        column: The column of the text.
        max_length: Most tokens of a text; None is no limit.
        dense: Numbers beside the text; None: there are none.
        dictionary: What is known of words; None: nothing is.
        ngrams: Knows the n-grams of texts; None: the model looks at none.

    Raises:
        UserError: There is a dictionary, but the tokenizer's tokens are no words.
    """

    kind = "classification"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        **TEXT_KINDS,
        "label": (LabelColumn, LabelsColumn),
    }
    optional = BESIDE_TEXT

    def __init__(
        self,
        tokenizer: Tokenizer,
        labels: Labels,
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
        super().__init__(inputs, {"label": label_column(labels)})

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "ClassificationText":
        columns = cls.load_columns(folder, settings)
        text = columns["text"]
        return cls(**fitted_with(columns), column=text.name, max_length=text.limit)
