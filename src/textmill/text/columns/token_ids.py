"""Columns of ids of a tokenizer, and that of text."""

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import DataError, UserError
from textmill.text.columns.column import Column, columns, texts_of
from textmill.text.ragged import Ragged, offsets_of
from textmill.text.tokenizers.tokenizer import Encoder, Tokenizer, encode_column, id_type


class IdsColumn(Column):
    """Base of columns whose numbers are the ids of a tokenizer."""

    ingredient: ClassVar[str] = "tokenizer"

    def __init__(self, name: str, tokenizer: Tokenizer, *, limit: int | None = None) -> None:
        if limit is not None and limit < 1:
            raise UserError(f"A text keeps at least 1 token, but the limit of '{name}' is {limit}.")
        super().__init__(name, **{self.ingredient: tokenizer})
        self.tokenizer, self.limit, self.pad = tokenizer, limit, tokenizer.vocab_info.pad_idx
        self.sorted = tokenizer.ordered
        self._encoder = tokenizer.create_encoder()

    @override
    def cells(self, encoded: Sequence[Any], texts: Sequence[Any]) -> Sequence[Any]:
        if self.shares or not self.tokenizer.ordered:  # n-grams give no text
            return ()
        return self.tokenizer.create_decoder().batch(encoded)

    @property
    @override
    def kept_as(self) -> str:
        return id_type(self.tokenizer)


@columns.register("text")
class TextColumn(IdsColumn):
    """Text as token ids. A text without any token, as an empty one, is one unknown token."""

    kind = "text"

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        encoded = encode_column(self._encoder, texts_of(values, self.name), self.name)
        empty = np.flatnonzero(encoded.lengths == 0)
        if not len(empty):
            return encoded
        at, unknown = encoded.offsets[empty], self.tokenizer.vocab_info.unk_idx
        ids = np.insert(encoded.values, at, unknown)
        return Ragged(ids, offsets_of(np.maximum(encoded.lengths, 1)))

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        """The first ids of each row; of a longer one the last, where the tokenizer ``closes``."""
        return encoded.clipped(limit) if self.tokenizer.closes else super().cut(encoded, limit)

    @override
    def encode_one(self, value: Any) -> NDArray[np.int64] | None:
        # A subclass may encode in another way.
        return encoded_one(self._encoder, value) if type(self) is TextColumn else None


def encoded_one(encoder: Encoder, text: object) -> NDArray[np.int64] | None:
    """The ids of a text by itself; None where it is none, or has none."""
    try:
        ids = encoder(text) if type(text) is str else ()
    except DataError:  # which a column says with the row and its name
        return None
    return np.asarray(ids, np.int64) if len(ids) else None


def one_limit(
    roles: Sequence[str], columns: Sequence[str], tokenizer: Tokenizer, limit: int
) -> dict[str, Column]:
    """A column of text for each role, all of one tokenizer and limit."""
    named = zip(roles, columns, strict=True)
    return {role: TextColumn(name, tokenizer, limit=limit) for role, name in named}
