"""What encoded training data says of its labels: those without an example, and one for all."""

from collections.abc import Iterator

import numpy as np

from weft.text.columns.label import LabelColumn, LabelsColumn, SeveralLabels
from weft.text.columns.path import ColumnsText
from weft.text.labels import SHOWN
from weft.text.paths import Encoded

__all__ = ["label_notes"]


def label_notes(text: ColumnsText, encoded: Encoded) -> Iterator[str]:
    """A sentence for each column whose labels cannot all be learnt from the rows.

    Args:
        text: The columns.
        encoded: The rows of ``train_data``, with their targets.

    Example:
        >>> from weft.text.classification import ClassificationText
        >>> from weft.text.labels import Labels
        >>> from weft.text.symbols import CharacterTokenizer
        >>> letters = CharacterTokenizer.Config(characters="a").build()
        >>> text = ClassificationText(letters, Labels(["ham", "spam", "eggs"]))
        >>> rows = [{"text": "a", "label": "ham"}, {"text": "a", "label": "spam"}]
        >>> encoded = text.encode(rows, with_targets=True)
        >>> [note.split(" What")[0] for note in label_notes(text, encoded)]
        ["1 of the 3 labels in column 'label' has no example in train_data: 'eggs'."]
    """
    for role, column in text.targets.items():
        if not isinstance(column, LabelColumn | SeveralLabels):
            continue
        numbers = encoded[role].values
        counts = np.bincount(numbers[numbers >= 0], minlength=len(column.labels))
        names = [name for name, count in zip(column.labels, counts, strict=True) if not count]
        where = f"in column '{column.name}'"
        if len(names) == len(counts) - 1 and not isinstance(column, LabelsColumn):
            only = column.labels[int(counts.argmax())]
            yield (
                f"Every label {where} of train_data is {only!r}: a model of it answers nothing "
                "else. Add rows of other labels, or look for the labels in another column."
            )
        elif names:
            have = "has" if len(names) == 1 else "have"
            shown = ", ".join(map(repr, names[:SHOWN])) + (", ..." if len(names) > SHOWN else "")
            yield (
                f"{len(names)} of the {len(counts)} labels {where} {have} no example in "
                f"train_data: {shown}. What has none is hardly ever an answer. Add rows of it, "
                "or leave it out of the declared labels."
            )
