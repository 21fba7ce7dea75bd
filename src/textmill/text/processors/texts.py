"""Text processors of texts: a text, or two, to labels, a number, a score or a vector."""

import math
from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import ArrayLike, NDArray
from typing_extensions import override

from textmill.errors import UserError
from textmill.text.answers import LEAST_SCORE, Answer, label_evidence, number_evidence
from textmill.text.columns.column import Column, ColumnKind
from textmill.text.columns.inputs import TEXT_KINDS
from textmill.text.columns.labels import LabelColumn, LabelsColumn
from textmill.text.columns.numbers import NumberColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.processors.column_processor import ColumnsText
from textmill.text.processors.text_processor import text_processors


@dataclass(frozen=True)
class Classified(Answer):
    """The label, or labels, of a text; ``str()`` gives them."""

    keys = ("prediction=label", "score", "scores")
    options = frozenset({"n_best", "threshold", "explain"})

    label: str
    """The most probable label, empty if it is not above its threshold; if a text can have several,
    all of them, separated by commas."""
    score: float
    """The probability of the most probable label; of several labels, or none of them, that of the
    least certain decision."""
    scores: Mapping[str, float] = field(default_factory=dict)
    """The probability of every label; by ``n_best`` those of so many, the best first."""
    labels: tuple[str, ...] = ()
    """The labels, if a text can have several or none."""
    multiple: bool = False
    """Whether it can."""

    @override
    def __str__(self) -> str:
        return self.label

    @property
    def log_scores(self) -> dict[str, float]:
        """The log probability of every label, with all its digits."""
        return {name: math.log(max(score, LEAST_SCORE)) for name, score in self.scores.items()}

    @override
    def chosen(self, *, n_best: int | None = None, threshold: float | None = None) -> "Classified":
        found, scores = self, self.scores
        if threshold is not None:
            answer = _several if self.multiple else _single
            row = np.fromiter(scores.values(), np.float64, len(scores))
            found = answer(row, tuple(scores), dict.fromkeys(scores, threshold))
        ranked = sorted(scores, key=lambda name: -scores[name])[:n_best]
        kept = scores if n_best is None else {name: scores[name] for name in ranked}
        return replace(found, scores=kept)

    @override
    def evidence(self, label: str | None = None) -> tuple[str, float, float]:
        return label_evidence(self.scores, label)


Thresholds = Mapping[str, float] | None


class _AnyThresholds(Container[Any]):
    """What thresholds can be: None, or a number for each label."""

    @override
    def __contains__(self, value: object) -> bool:
        is_given = isinstance(value, dict) and all(isinstance(b, float) for b in value.values())
        return value is None or is_given


class _TextsText(ColumnsText):
    """Base of text processors of a text with what stands beside it, or of two texts."""

    kinds: ClassVar[Mapping[str, ColumnKind]] = {
        **TEXT_KINDS,
        "text1": TextColumn,
        "text2": TextColumn,
    }
    optional = frozenset(kinds)
    alike = ("text1", "text2")

    def __init__(self, inputs: Mapping[str, Column], targets: Mapping[str, Column]) -> None:
        if {*self.alike} != {*inputs} and not {"text"} <= {*inputs} <= {*TEXT_KINDS}:
            raise UserError(f"wanted one text or two, found {', '.join(inputs) or 'none'}.")
        super().__init__(inputs, targets)


@text_processors.register("classification")
class LabelText(_TextsText):
    """A text with what stands beside it, or two texts, to a label or to several."""

    answer_class = Classified
    kind = "classification"
    kinds: ClassVar[Mapping[str, ColumnKind]] = {
        **_TextsText.kinds,
        "label": LabelColumn | LabelsColumn,
    }
    target_roles = frozenset({"label"})
    answer_settings = {"thresholds": _AnyThresholds()}  # noqa: RUF012  # a ClassVar of the base
    thresholds: Thresholds = None
    """For each label the probability above which it is an answer. None: the most probable label
    always is; if a text can have several, each above 0.5."""
    temperature: float = 1.0
    """What the task divides scores by before they become probabilities."""

    @property
    def label(self) -> LabelColumn | LabelsColumn:
        column = self.targets["label"]
        assert isinstance(column, LabelColumn | LabelsColumn)
        return column

    @property
    def multiple(self) -> bool:
        """Whether a text can have several labels, or none."""
        return isinstance(self.label, LabelsColumn)

    def calibrate(self, temperature: float, thresholds: Thresholds) -> None:
        """Answers from now on by what calibrating the trained model found."""
        if thresholds is not None and {*thresholds} != {*self.label.labels.names}:
            raise UserError("The thresholds are of other labels: calibrate the run again.")
        self.temperature, self.thresholds = temperature, thresholds

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Classified]:
        """Answers from the probabilities of all labels. *Shape:* ``[L]`` for each row."""
        label, bounds = self.label, self.thresholds
        answer = _several if isinstance(label, LabelsColumn) else _single
        return [answer(np.asarray(row), label.labels.names, bounds) for row in outputs]


def _single(row: NDArray[Any], names: tuple[str, ...], bounds: Thresholds) -> Classified:
    scores = row.tolist()
    best = int(row.argmax())
    label = names[best] if bounds is None or scores[best] > bounds[names[best]] else ""
    return Classified(label, scores[best], dict(zip(names, scores, strict=True)))


def _several(row: NDArray[Any], names: tuple[str, ...], bounds: Thresholds) -> Classified:
    scores = dict(zip(names, row.tolist(), strict=True))
    bounds = bounds or dict.fromkeys(names, 0.5)
    labels = tuple(name for name, score in scores.items() if score > bounds[name])
    certain = min(score if score > bounds[name] else 1 - score for name, score in scores.items())
    return Classified(", ".join(labels), certain, scores, labels, multiple=True)


@dataclass(frozen=True)
class Estimated(Answer):
    """The number of a text; ``str()`` writes it with four digits."""

    keys = ("prediction=number",)
    options = frozenset({"explain"})

    number: float
    """In the units of the training data."""

    @override
    def __str__(self) -> str:
        return f"{self.number:.4g}"

    @override
    def evidence(self, label: str | None = None) -> tuple[str, float, float]:
        return number_evidence(self.number, label)


@text_processors.register("regression")
class NumberText(_TextsText):
    """A text with what stands beside it, or two texts, to a number."""

    answer_class = Estimated
    kind = "regression"
    kinds: ClassVar[Mapping[str, ColumnKind]] = {**_TextsText.kinds, "number": NumberColumn}
    target_roles = frozenset({"number"})

    @property
    def number(self) -> NumberColumn:
        column = self.targets["number"]
        assert isinstance(column, NumberColumn)
        return column

    @override
    def decode(self, outputs: Iterable[ArrayLike]) -> list[Estimated]:
        numbers = (float(np.asarray(output, dtype=np.float64).item()) for output in outputs)
        return [Estimated(self.number.restored(number)) for number in numbers]


@dataclass(frozen=True)
class Ranked(Answer):
    """How well a document answers a query; ``str()`` writes it with four digits."""

    keys = ("prediction=score", "negative_score=negative?")
    options = frozenset({"explain"})

    score: float
    """The cosine between the two, from -1 to 1: more is better."""
    negative: float | None = None
    """In an evaluation, the score of the row's wrong document."""

    @override
    def __str__(self) -> str:
        return f"{self.score:.4g}"

    @override
    def evidence(self, label: str | None = None) -> tuple[str, float, float]:
        return number_evidence(self.score, label)


@text_processors.register("ranking")
class RankingText(ColumnsText):
    """A query and a document to a score; in training, also with a document that is not an answer.

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


DIGITS = 9
"""Significant digits from which the same float32 is read back (C's ``FLT_DECIMAL_DIG``)."""


@dataclass(frozen=True, eq=False)
class Embedded(Answer):
    """The vector of a text; ``str()`` writes its first numbers."""

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
