"""Text processors whose answer is a label, or several."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from textmill.text.answers import Answer
from textmill.text.columns.inputs import BESIDE_TEXT, TEXT_KINDS
from textmill.text.columns.labels import LabelColumn, LabelsColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import text_processors


@dataclass(frozen=True)
class Classified(Answer):
    """The label, or labels, of a text; ``str()`` gives them.

    Example:
        >>> print(Classified("spam", 0.98, {"ham": 0.02, "spam": 0.98}))
        spam
    """

    keys = ("prediction=label", "score", "scores")

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

    answer_class = Classified

    target_roles = frozenset({"label"})

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
    """Text, and what stands beside it, to a label, or to several.

    Example:
        >>> from textmill.text.columns.inputs import text_columns
        >>> from textmill.text.columns.labels import label_column
        >>> from textmill.text.features.labels import Labels
        >>> from textmill.text.tokenizers.character_tokenizers import CharacterTokenizer
        >>> letters = CharacterTokenizer.Config(characters="a").build()
        >>> label = label_column(Labels(["ham", "spam"]))
        >>> text = ClassificationText(text_columns(letters), {"label": label})
        >>> str(text.decode([[0.1, 0.9]])[0])
        'spam'
    """

    kind = "classification"
    kinds = {**TEXT_KINDS, "label": LabelColumn | LabelsColumn}  # noqa: RUF012  # of the base
    optional = BESIDE_TEXT


@text_processors.register("pair_label")
class PairLabelText(LabelText):
    """Two texts to a label, or to several."""

    kind = "pair_label"
    kinds = {  # noqa: RUF012  # of the base
        "text1": TextColumn,
        "text2": TextColumn,
        "label": LabelColumn | LabelsColumn,
    }
    alike = ("text1", "text2")
