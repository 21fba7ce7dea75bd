"""How well scores rank: labels by ROC AUC, precision and recall; right answers among wrong ones."""

import hashlib
import json
import math
from array import array
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.metrics.metric import (
    Direction,
    HigherIsBetter,
    Metric,
    MetricError,
    aligned,
    distinct_labels,
    nan_without,
)
from textmill.metrics.streaming import Averaged

_PRECISIONS = (0.2, 0.4, 0.6, 0.8, 0.9)

Floats = NDArray[np.float64]


class LabelScores(HigherIsBetter):
    """The scores of every label in each row, against the label or labels that are right.

    Each label is ranked against all others (one versus rest), as in scikit-learn, equal scores
    being one threshold. Values: ``roc_auc`` and ``average_precision``, the means over the labels
    that some rows have and others have not (NaN without one); and of each of two labels
    ``label/<name>/roc_auc``, ``/average_precision`` and, for 0.2, 0.4, 0.6, 0.8 and 0.9,
    ``/recall_at_precision/0.2``: the highest recall of a threshold whose precision is at least
    that, 0 where none has it. A gold label outside of ``labels``, or None, is a row that has none
    of them.

    Ranks need the scores: up to ``limit`` of them, rows times labels, are kept (8 bytes each); with
    more, all values are NaN and ``details`` say so, as they do where a score is not a number.
    """

    def __init__(self, labels: Sequence[str], *, limit: int = 1_000_000) -> None:
        self.labels, self.limit = distinct_labels(self, labels), limit
        self.per_label = self.labels if len(self.labels) == 2 else ()
        """The labels that get values of their own."""
        self._rows = self._not_numbers = 0
        self._kept = self._nothing()

    @override
    def update(
        self,
        gold: Sequence[str | Collection[str] | None],
        scores: Sequence[Sequence[float]] | NDArray[Any],
    ) -> None:
        """Adds rows: the right label of each, or several, and its scores, ``[rows, labels]``."""
        matrix = _matrix(scores, len(self.labels))
        rows = [one for one, _ in aligned(self, gold, list(matrix))]
        numbers = ~np.isnan(matrix).any(axis=1)
        self._rows += len(rows)
        self._not_numbers += int((~numbers).sum())
        if self._is_measured():
            right = [{one} if isinstance(one, str) else set(one or ()) for one in rows]
            has = np.array([[label in found for label in self.labels] for found in right], bool)
            has = has.reshape(matrix.shape)
            for j, kept in enumerate(self._kept.values()):
                for scores_kept, chosen in zip(kept, (has[:, j], ~has[:, j]), strict=True):
                    scores_kept.frombytes(matrix[chosen, j].tobytes())
        else:
            self._kept = self._nothing()

    @override
    def compute(self) -> dict[str, float]:
        curves = {
            label: _Curve(*(np.sort(np.array(scores)) for scores in kept))
            for label, kept in self._kept.items()
        }
        ranked = [curve for curve in curves.values() if len(curve.negative)]
        of_labels = {
            f"label/{label}/{name}": value
            for label in self.per_label
            for name, value in curves[label].values().items()
        }
        return {
            "roc_auc": _mean([curve.roc_auc() for curve in ranked]),
            "average_precision": _mean([curve.average_precision() for curve in ranked]),
            **of_labels,
        }

    @override
    def details(self) -> dict[str, str]:
        if self._is_measured():
            return {}
        text = (
            f"{self._not_numbers:,} of {self._rows:,} rows have a score that is not a number"
            if self._not_numbers
            else f"over {self.limit:,} scores: not measured"
        )
        return dict.fromkeys(self.directions(), text)

    def _is_measured(self) -> bool:
        return self._rows * len(self.labels) <= self.limit and not self._not_numbers

    def _nothing(self) -> "dict[str, tuple[array[float], array[float]]]":
        """The scores of each label: in rows that have it, and in rows that do not."""
        return {label: (array("d"), array("d")) for label in self.labels}


def _matrix(scores: Sequence[Sequence[float]] | NDArray[Any], width: int) -> Floats:
    if not len(scores):
        return np.zeros((0, width))
    try:
        matrix = np.asarray(scores, np.float64)
        found = f"an array of the shape {list(matrix.shape)}"
    except ValueError:  # rows of different lengths
        matrix, found = np.zeros(0), "rows of different lengths"
    if matrix.ndim != 2 or matrix.shape[1] != width:
        raise MetricError(
            f"LabelScores needs a score of each row for each of its {width} labels, "
            f"[rows, {width}], but was given {found}."
        )
    return matrix


class _Curve:
    """The sorted scores of one label: in rows that have it, and in rows that do not."""

    def __init__(self, positive: Floats, negative: Floats) -> None:
        self.positive, self.negative = positive, negative
        thresholds = np.unique(np.concatenate([positive, negative]))[::-1]
        # Of each threshold, from high to low: how many rows have at least that score.
        right = len(positive) - np.searchsorted(positive, thresholds, "left")
        wrong = len(negative) - np.searchsorted(negative, thresholds, "left")
        self.precision: Floats = right / np.maximum(right + wrong, 1)
        self.recall: Floats = right / max(len(positive), 1)

    def values(self) -> dict[str, float]:
        recalls = {f"recall_at_precision/{least}": self.recall_at(least) for least in _PRECISIONS}
        averages = {"roc_auc": self.roc_auc(), "average_precision": self.average_precision()}
        return averages | recalls

    def roc_auc(self) -> float:
        if not len(self.positive) or not len(self.negative):
            return math.nan
        below = np.searchsorted(self.negative, self.positive, "left")
        not_above = np.searchsorted(self.negative, self.positive, "right")
        return int(below.sum() + not_above.sum()) / (2 * len(self.positive) * len(self.negative))

    def average_precision(self) -> float:
        if not len(self.positive):
            return math.nan
        added = np.diff(self.recall, prepend=0.0)
        return math.fsum((added * self.precision).tolist())

    def recall_at(self, precision: float) -> float:
        if not len(self.positive):
            return math.nan
        return float(self.recall[self.precision >= precision].max(initial=0.0))


def _mean(values: Sequence[float]) -> float:
    found = [value for value in values if not math.isnan(value)]
    return math.fsum(found) / len(found) if found else math.nan


class Ranking(Averaged):
    """The scores of a right and of a wrong answer, one of each a row.

    Values: ``ranking_accuracy``, the share of rows in which the right one scores higher (a tie is
    wrong); ``avg_score_difference``, the mean of right minus wrong; ``num_examples``, the rows.
    """

    def __init__(self) -> None:
        super().__init__(dict.fromkeys(("ranking_accuracy", "avg_score_difference"), "higher"))

    @override
    def update(self, positive_scores: Sequence[float], negative_scores: Sequence[float]) -> None:
        """Adds the scores of each row's right and wrong answer; none where their lengths differ."""
        pairs = [(float(a), float(b)) for a, b in aligned(self, positive_scores, negative_scores)]
        for positive, negative in pairs:
            self.add("ranking_accuracy", positive > negative)
            self.add("avg_score_difference", positive, -negative)

    @override
    def compute(self) -> dict[str, float]:
        rows = self._means["ranking_accuracy"].count
        return {**super().compute(), "num_examples": rows or math.nan}

    @override
    def errors(self) -> dict[str, float]:
        return self.share_errors("ranking_accuracy")

    @override
    def directions(self) -> Mapping[str, Direction]:
        return {**super().directions(), "num_examples": "higher"}


BLOCK = 1024
"""Questions that are compared with all texts at a time."""
Kept = tuple[tuple[str, ...], bytes]
"""The candidate answers of a row, the right one first, and all its vectors."""


class Retrieval(Metric):
    """Where a row's right text stands among the texts of all rows, by the cosine of vectors.

    Values: ``recall_at_1`` and ``recall_at_10``, the share of rows whose right text is the nearest,
    or one of the ten nearest; ``mrr``, the mean of one over its place. Among the texts are the
    wrong ones that rows bring. A text that is in several rows is one text, and rows that are equal
    are one row; another text that is as near as the right one stands before it.

    All rows are compared with all, so they are kept: up to ``limit`` of them, of 8 kB each where
    vectors have 1,000 features. Of more, those are measured whose texts have the least hashes, the
    same ones in every order; ``details`` say so. A vector that is not finite makes all values NaN.
    """

    def __init__(self, *, limit: int = 10_000) -> None:
        self.limit = limit
        self._kept: dict[str, Kept] = {}
        self._left_out = self._not_finite = False

    @override
    def update(self, texts: Sequence[Sequence[str]], vectors: NDArray[Any]) -> None:
        """Adds rows: what is asked, its right text, and perhaps wrong ones; with their vectors.

        *Shape* of the vectors: ``[N, K, D]``.
        """
        if len(texts) != len(vectors) or any(len(t) != vectors.shape[1] for t in texts):
            raise MetricError(
                f"Retrieval needs a vector of each text of {len(texts)} rows, but was given an "
                f"array of the shape {list(vectors.shape)}."
            )
        made = np.asarray(vectors, dtype="<f4")
        self._not_finite |= not np.isfinite(made).all()
        for row, own in zip(texts, made, strict=True):
            key = hashlib.sha256(json.dumps(list(row)).encode()).hexdigest()
            self._keep(key, (tuple(row[1:]), own.tobytes()))
        self._prune(2 * self.limit)

    @override
    def compute(self) -> dict[str, float]:
        self._prune(self.limit)
        values = dict.fromkeys(self.directions(), math.nan)
        if self._not_finite or not self._kept:
            return nan_without(0, values)
        places = self._places()
        values["recall_at_1"] = float((places == 1).mean())
        values["recall_at_10"] = float((places <= 10).mean())
        values["mrr"] = math.fsum((1 / places).tolist()) / len(places)
        return values

    @override
    def directions(self) -> Mapping[str, Direction]:
        return dict.fromkeys(("recall_at_1", "recall_at_10", "mrr"), "higher")

    @override
    def details(self) -> dict[str, str]:
        self._prune(self.limit)
        if self._not_finite:
            return dict.fromkeys(self.directions(), "vectors are not finite")
        if self._left_out:
            among = f"among {len(self._kept):,} of the rows"
            return dict.fromkeys(self.directions(), among)
        return {}

    def _keep(self, key: str, row: Kept) -> None:
        # Vectors of one text differ by rounding from batch to batch: one of them is chosen.
        self._kept[key] = min(row, self._kept.get(key, row))

    def _prune(self, most: int) -> None:
        if len(self._kept) > most:
            self._kept = {key: self._kept[key] for key in sorted(self._kept)[: self.limit]}
            self._left_out = True

    def _places(self) -> NDArray[np.int64]:
        asked, found = [], dict[str, NDArray[np.float64]]()
        for _, (names, raw) in sorted(self._kept.items()):
            own = np.frombuffer(raw, "<f4").reshape(len(names) + 1, -1).astype(np.float64)
            own /= np.maximum(np.linalg.norm(own, axis=1, keepdims=True), 1e-12)
            asked.append((own[0], names[0]))
            for text, vector in zip(names, own[1:], strict=True):
                found.setdefault(text, vector)
        at = {text: place for place, text in enumerate(found)}
        right = np.array([at[text] for _, text in asked])
        questions, texts = np.stack([vector for vector, _ in asked]), np.stack([*found.values()])
        places = np.empty(len(questions), np.int64)
        for start in range(0, len(questions), BLOCK):
            some = slice(start, start + BLOCK)
            near = questions[some] @ texts.T
            own = np.take_along_axis(near, right[some, None], axis=1)
            places[some] = (near >= own).sum(axis=1)
        return places
