"""The text processor of embedding: a text to a vector."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from textmill.text.answers import Answer
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import text_processors

DIGITS = 9
"""Of numbers as data: from so many the same float32 is read back (C's ``FLT_DECIMAL_DIG``)."""


@dataclass(frozen=True, eq=False)
class Embedded(Answer):
    """The vector of a text; ``str()`` writes its first numbers.

    Example:
        >>> print(Embedded(np.array([0.6, 0.8], np.float32)))
        [0.6, 0.8]
    """

    keys = ("prediction=numbers",)

    vector: NDArray[np.float32]
    """*Shape:* ``[D]``."""

    @override
    def __str__(self) -> str:
        first = ", ".join(f"{number:.4g}" for number in self.vector[:4].tolist())
        return f"[{first}{', ...' if len(self.vector) > 4 else ''}]"

    @override
    def __eq__(self, other: object) -> bool:
        return isinstance(other, Embedded) and np.array_equal(self.vector, other.vector)

    @override
    def __hash__(self) -> int:
        return hash(self.vector.tobytes())

    @property
    def numbers(self) -> list[float]:
        """The vector in decimal numbers from which the same float32 are read back."""
        exact = self.vector.astype(np.float64)
        sized = np.where(np.isfinite(exact) & (exact != 0), np.abs(exact), 1.0)
        scale = 10.0 ** (DIGITS - 1 - np.floor(np.log10(sized)))
        return list((np.rint(exact * scale) / scale).tolist())

    @override
    def row(self) -> dict[str, Any]:
        return {"prediction": self.numbers}


@dataclass(frozen=True, eq=False)
class ComparedTexts(Answer):
    """In an evaluation, the vectors of all texts of a row."""

    keys = ("similarity", "negative_similarity?")

    vectors: NDArray[np.float32]
    """*Shape:* ``[K, D]``: of the first text, of the second one, of a wrong one."""

    @property
    def cosines(self) -> list[float]:
        """The cosine between the first text and each other one; NaN where a vector is zero."""
        first, *others = self.vectors.astype(np.float64)
        lengths = np.linalg.norm(first) * np.linalg.norm(others, axis=1)
        with np.errstate(invalid="ignore"):
            return list((np.asarray(others) @ first / lengths).tolist())

    @property
    def similarity(self) -> float:
        """The cosine between the row's two texts, from -1 to 1."""
        return self.cosines[0]

    @property
    def negative_similarity(self) -> float | None:
        """That of the first text and the wrong one."""
        return None if len(self.vectors) < 3 else self.cosines[1]


@text_processors.register("embedding")
class EmbeddingText(ColumnsText):
    """A text to a vector; in training, with one that belongs to it, and a wrong one or a score.

    In prediction the column ``text1`` is of the text that is asked about.
    """

    answer_class = Embedded
    kind = "embedding"
    kinds = {  # noqa: RUF012  # of the base
        "text1": TextColumn,
        "text2": TextColumn,
        "negative": TextColumn,
        "score": NumberColumn,
    }
    target_roles = frozenset({"text2", "negative", "score"})
    optional = frozenset({"negative", "score"})
    alike = ("text1", "text2", "negative")

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Any]:
        """Answers from the vector of a row's text, or from those of all. *Shape:* ``[(K,) D]``."""
        rows = (np.asarray(row, dtype=np.float32) for row in outputs)
        return [Embedded(row) if row.ndim == 1 else ComparedTexts(row) for row in rows]
