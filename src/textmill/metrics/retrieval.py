"""Retrieval: whether the right text is the nearest one among all that are evaluated."""

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any, final

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.metrics.checks import nan_without
from textmill.metrics.metric import Direction, Metric, MetricError

BLOCK = 1024
"""Questions that are compared with all texts at a time."""
Kept = tuple[tuple[str, ...], bytes]
"""The texts that a row may be answered by, the right one first, and all its vectors."""


@final
class Retrieval(Metric):
    """Where a row's right text stands among the texts of all rows, by the cosine of vectors.

    Values: ``recall_at_1`` and ``recall_at_10``, the share of rows whose right text is the nearest,
    or one of the ten nearest; ``mrr``, the mean of one over its place. Among the texts are the
    wrong ones that rows bring. A text that is in several rows is one text, and rows that are equal
    are one row; another text that is as near as the right one stands before it.

    All rows are compared with all, so they are kept: up to ``limit`` of them. Of more, those are
    measured whose texts have the least hashes, the same ones in every order; ``details`` say so. A
    vector that is not finite makes all values NaN.

    Args:
        limit: Most rows that are kept, of 8 kB each where vectors have 1,000 features.

    Example:
        >>> metric = Retrieval()
        >>> near, far = [1.0, 0.0], [0.0, 1.0]
        >>> metric.update([("a", "b"), ("c", "d")], np.array([[near, near], [near, far]]))
        >>> metric.compute()
        {'recall_at_1': 0.5, 'recall_at_10': 1.0, 'mrr': 0.75}
    """

    def __init__(self, *, limit: int = 10_000) -> None:
        self.limit = limit
        self._kept: dict[str, Kept] = {}
        self._left_out = self._not_finite = False

    @override
    def update(self, texts: Sequence[Sequence[str]], vectors: NDArray[Any]) -> None:
        """Adds rows.

        Args:
            texts: Of each row what is asked, its right text, and perhaps wrong ones.
            vectors: Those of its texts. *Shape:* ``[N, K, D]``.

        Raises:
            MetricError: There are other texts than vectors; nothing was added then.
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
        """Of each row the place of its right text, from 1."""
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
