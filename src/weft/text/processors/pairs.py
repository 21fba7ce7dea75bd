"""Processors of two texts a row: to a label, to a number, or to how well one answers the other."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import ArrayLike
from typing_extensions import override

from weft.text.columns.column import Column
from weft.text.columns.labels import LabelColumn, LabelsColumn, label_column
from weft.text.columns.numbers import NumberColumn
from weft.text.columns.token_ids import TextColumn
from weft.text.features.labels import Labels
from weft.text.metadata import SavedTextError
from weft.text.processors.classification import LabelText
from weft.text.processors.column_processor import ColumnsText, fitted_with
from weft.text.processors.regression import NumberText
from weft.text.processors.text_processor import text_processors
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["PairLabelText", "PairNumberText", "Ranked", "RankingText"]

PAIR: Final[Mapping[str, tuple[type[Column], ...]]] = {
    "text1": (TextColumn,),
    "text2": (TextColumn,),
}
"""The two texts of a row."""


@text_processors.register("pair_label")
class PairLabelText(LabelText):
    """Two texts to a label, or to several.

    Args:
        tokenizer: Encodes both texts.
        labels: The labels there are.
        columns: The columns of the first and of the second text.
        max_length: Most tokens of each text; None is no limit.
    """

    kind = "pair_label"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        **PAIR,
        "label": (LabelColumn, LabelsColumn),
    }

    def __init__(
        self,
        tokenizer: Tokenizer,
        labels: Labels,
        *,
        columns: tuple[str, str] = ("text1", "text2"),
        max_length: int | None = None,
    ) -> None:
        texts = _texts(tuple(PAIR), columns, tokenizer, max_length)
        super().__init__(texts, {"label": label_column(labels)})

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "PairLabelText":
        found = cls.load_columns(folder, settings)
        return cls(**fitted_with(found), **_made_with(folder, found, tuple(PAIR)))


@text_processors.register("pair_number")
class PairNumberText(NumberText):
    """Two texts to a number.

    Args:
        tokenizer: Encodes both texts.
        number: The column of the number.
        columns: The columns of the first and of the second text.
        max_length: Most tokens of each text; None is no limit.
    """

    kind = "pair_number"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        **PAIR,
        "number": (NumberColumn,),
    }

    def __init__(
        self,
        tokenizer: Tokenizer,
        number: NumberColumn,
        *,
        columns: tuple[str, str] = ("text1", "text2"),
        max_length: int | None = None,
    ) -> None:
        texts = _texts(tuple(PAIR), columns, tokenizer, max_length)
        super().__init__(texts, {"number": number})

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "PairNumberText":
        found = cls.load_columns(folder, settings)
        number = found["number"]
        assert isinstance(number, NumberColumn)
        texts = _made_with(folder, found, tuple(PAIR))
        return cls(**fitted_with(found), number=number, **texts)


@dataclass(frozen=True)
class Ranked:
    """How well a document answers a query; ``str()`` writes it with four digits.

    Example:
        >>> print(Ranked(0.75), max([Ranked(0.5), Ranked(0.75)], key=lambda answer: answer.score))
        0.75 0.75
    """

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

    Args:
        tokenizer: Encodes all texts.
        columns: The columns of the query, of the right document (in prediction, of the one that is
            asked about), and of the wrong one, which training and evaluation alone need.
        max_length: Most tokens of each text; None is no limit.
    """

    kind = "ranking"
    kinds = {  # noqa: RUF012  # a ClassVar of the base
        "query": (TextColumn,),
        "positive": (TextColumn,),
        "negative": (TextColumn,),
    }

    def __init__(
        self,
        tokenizer: Tokenizer,
        *,
        columns: tuple[str, str, str] = ("query", "positive", "negative"),
        max_length: int | None = None,
    ) -> None:
        texts = _texts(tuple(self.kinds), columns, tokenizer, max_length)
        negative = texts.pop("negative")
        super().__init__(texts, {"negative": negative})

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Ranked]:
        """Answers from the cosine of the document, and of the wrong one. *Shape:* ``[1 or 2]``."""
        rows = (np.asarray(row, dtype=np.float64).tolist() for row in outputs)
        return [Ranked(*row) for row in rows]

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "RankingText":
        found = cls.load_columns(folder, settings)
        return cls(**fitted_with(found), **_made_with(folder, found, tuple(cls.kinds)))


def _texts(
    roles: Sequence[str], columns: Sequence[str], tokenizer: Tokenizer, max_length: int | None
) -> dict[str, Column]:
    """A column of text for each role."""
    return {
        role: TextColumn(name, tokenizer, limit=max_length)
        for role, name in zip(roles, columns, strict=True)
    }


def _made_with(folder: Path, found: Mapping[str, Column], roles: Sequence[str]) -> dict[str, Any]:
    """What the saved columns of text were made with: all by one tokenizer and of one limit.

    Raises:
        SavedTextError: They are not, so one was changed.
    """
    texts = [column for role in roles if isinstance(column := found[role], TextColumn)]
    first = texts[0]
    for role, text in zip(roles, texts, strict=True):
        if (text.tokenizer.vocab_info, text.limit) != (first.tokenizer.vocab_info, first.limit):
            raise SavedTextError(
                f"{folder / 'columns' / role}: has another tokenizer or limit than the column of "
                f"the {roles[0]}. Save the text processor again."
            )
    return {"columns": tuple(text.name for text in texts), "max_length": first.limit}
