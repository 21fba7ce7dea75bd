"""Columns of texts that belong together, in order: turns of a conversation, sentences of a text."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import UserError
from textmill.text.cells import texts_in
from textmill.text.columns.column import Column, columns
from textmill.text.columns.token_ids import IdsColumn, TextColumn
from textmill.text.ragged import Ragged, offsets_of
from textmill.text.tokenizers.tokenizer import Tokenizer, not_text

END = -1
"""What follows the ids of each text in an encoded row; no id is below 0."""


@columns.register("texts")
class TextsColumn(IdsColumn):
    """The ids of each text of a list, whose places are texts. A batch has ``[B, N, T]``.

    Args:
        length: Ids of a text; of a longer one the first are kept.
        limit: Texts of a row; None is no limit.
        around: Of texts around another one, such as the turns before it, how many are read, the
            last ones; None: they are the row's own text.
    """

    kind = "texts"
    unit = "texts"

    def __init__(
        self,
        name: str,
        tokenizer: Tokenizer,
        *,
        length: int,
        limit: int | None = None,
        around: int | None = None,
    ) -> None:
        super().__init__(name, tokenizer, limit=limit)
        self.length, self._each = length, TextColumn(name, tokenizer, limit=length)
        self.around, self.shares = around, around is not None

    @property
    @override
    def kept_as(self) -> str:
        return "<i4"

    @override
    def check_beside(self, role: str, columns: Mapping[str, Column]) -> None:
        of_words = ("characters", "affixes", "pieces", "dictionary")
        wrong = [name for name in of_words if name in columns]
        if wrong and not self.shares:  # else they are those of the text that it is around
            raise UserError(
                f"A row of '{self.name}' has several texts, whose words can have no {wrong[0]} "
                f"beside them: leave {wrong[0]} out."
            )

    def texts(self, value: Any, row: int) -> list[str]:
        """The texts of one cell that are read."""
        return texts_in(value, self.name, row)[-(self.around or 0) :]

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [self.texts(value, row) for row, value in enumerate(values)]
        for row, texts in enumerate(rows):
            if error := not_text([" ".join(texts)], column=self.name, first=row):
                raise error
        ids = self._each.encode([text for texts in rows for text in texts])
        ids = self._each.cut(ids, self.length).wrapped([], [END])
        return Ragged(ids.values, ids.offsets[offsets_of([*map(len, rows)])])

    @override
    def places(self, encoded: Ragged) -> NDArray[np.int64]:
        ends = np.append(0, np.cumsum(encoded.values == END))
        return np.diff(ends[encoded.offsets])

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        if self.around is not None:  # the limit is that of another text
            return encoded
        ended = np.append(0, np.cumsum(encoded.values == END))
        place = ended[:-1] - np.repeat(ended[encoded.offsets[:-1]], encoded.lengths)
        kept = place < limit
        return Ragged(encoded.values[kept], np.append(0, np.cumsum(kept))[encoded.offsets])

    @override
    def box(
        self, encoded: Ragged, rows: NDArray[np.int64], least: int
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        chosen = encoded.take(rows)
        is_end, counts = chosen.values == END, self.places(chosen)
        sizes = np.diff(np.append(-1, np.flatnonzero(is_end))) - 1
        shape = max(counts.max(initial=0), least), max(sizes.max(initial=0), least)
        box = np.full((len(rows), *shape), self.pad, dtype=np.int64)
        row = np.repeat(np.arange(len(rows)), counts)
        place = np.arange(len(sizes)) - np.repeat(offsets_of(counts)[:-1], counts)
        text = np.repeat(np.arange(len(sizes)), sizes)
        at = np.arange(len(text)) - np.repeat(offsets_of(sizes)[:-1], sizes)
        box[row[text], place[text], at] = chosen.values[~is_end]
        return box, counts

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        decoder = self.tokenizer.create_decoder()
        return [decoder.batch([ids[ids != self.pad] for ids in row]) for row in encoded]
