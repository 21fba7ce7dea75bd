"""Exported models that fill the masks of texts."""

import copy
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.exported.columns import MISFITS
from textmill.exported.forward import ColumnGraph
from textmill.exported.manifest import ExportError
from textmill.exported.row_predictor import AnswerOptions, ExportedPredictor, Row, RowPredictor
from textmill.exported.seq2seq import ROWS
from textmill.text.processors.language_model import Filled, MaskedText


class ExportedMaskedModel(ExportedPredictor):
    """Fills the masks of texts.

    Args:
        graph: Scores the tokens at places: of ``text``, ``text.lengths``, and ``rows`` and
            ``places``, the numbers of the masks' rows and their places.
        top_k: How many tokens an answer has for each mask.
        longest: Most tokens of a text; None is any number.
    """

    text: MaskedText

    def __init__(
        self, text: MaskedText, graph: ColumnGraph, *, top_k: int, longest: int | None
    ) -> None:
        super().__init__(text)
        self.graph, self.top_k, self.longest = graph, top_k, longest

    @override
    def answers(self, rows: Sequence[Row]) -> list[Filled]:
        texts = [row[self.text.column] for row in rows]
        ids = self.text.masked(texts, longest=self.longest)
        order = sorted(range(len(ids)), key=lambda row: len(ids[row]))
        found: dict[int, Filled] = {}
        for start in range(0, len(order), ROWS):
            some = order[start : start + ROWS]
            try:
                fills = self.text.decode(self._likeliest([ids[row] for row in some]))
            except MISFITS as error:
                raise ExportError(f"The graph and the text do not fit: {error}") from error
            for row, masks in zip(some, fills, strict=True):
                found[row] = self.text.filled(texts[row], masks)
        return [found[row] for row in range(len(rows))]

    def _likeliest(
        self, texts: Sequence[Sequence[int]]
    ) -> list[tuple[NDArray[np.int64], NDArray[np.float64]]]:
        """Ids and probabilities of the likeliest tokens at the masks of each text."""
        width, pad = max(map(len, texts)), self.text.tokenizer.vocab_info.pad_idx
        read = np.array([[*ids, *[pad] * (width - len(ids))] for ids in texts], np.int64)
        lengths = np.array([len(ids) for ids in texts])
        rows, places = np.nonzero(read == self.text.mask_idx)
        plain = self.text.pieces.plain
        found = self.scores(read, rows, places, lengths=lengths)
        logits = np.where(plain, found.astype(np.float64), -np.inf)
        chances = np.exp(logits - logits.max(axis=1, keepdims=True))
        chances /= chances.sum(axis=1, keepdims=True)
        count = min(self.top_k, int(plain.sum()))
        best = np.argsort(-chances, axis=1, kind="stable")[:, :count]
        scores = np.take_along_axis(chances, best, axis=1)
        ends = np.cumsum(np.bincount(rows, minlength=len(texts)))[:-1]
        return [*zip(np.split(best, ends), np.split(scores, ends), strict=True)]

    def scores(
        self,
        ids: NDArray[np.int64],
        rows: NDArray[np.int64],
        places: NDArray[np.int64],
        *,
        lengths: NDArray[np.int64] | None = None,
    ) -> NDArray[np.float32]:
        """Scores of the tokens at places of texts, whose numbers are ``rows``. *Shape:* ``[N, V]``.

        *Shape:* texts ``[B, T]``, their lengths ``[B]``; rows and places ``[N]``.
        """
        lengths = np.full(len(ids), ids.shape[1]) if lengths is None else lengths
        arrays = {"text": ids, "text.lengths": lengths, "rows": rows, "places": places}
        return self.graph.run(arrays)[0]

    @override
    def with_options(self, options: AnswerOptions) -> RowPredictor:
        if [*options.given] != ["n_best"]:
            return super().with_options(options)
        made = copy.copy(self)
        made.top_k = options.n_best or self.top_k
        return made

    @override
    def check(self, row: Row) -> None:
        self.text.masked([row[self.text.column]], longest=self.longest)
