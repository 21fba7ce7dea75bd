"""The column of the n-grams of a text, beside the text itself."""

from collections.abc import Mapping, Sequence
from typing import Any

from typing_extensions import override

from weft.errors import UserError
from weft.text.cells import words_in
from weft.text.columns.column import columns
from weft.text.columns.token_ids import IdsColumn
from weft.text.ragged import Ragged
from weft.text.tokenizers.ngram_tokenizer import NgramTokenizer
from weft.text.tokenizers.tokenizer import Tokenizer, encode_column

__all__ = ["MOST", "NgramsColumn"]

MOST = 8192
"""N-grams of a text: those of a thousand words. A longer one loses its rarest."""


@columns.register("ngrams")
class NgramsColumn(IdsColumn):
    """The known n-grams of a text, each once; it shares the text's column.

    Args:
        name: The column of the text.
        tokenizer: Knows the n-grams.
        limit: Of the text, which n-grams do not keep to; it is not looked at.

    Raises:
        UserError: The tokenizer's tokens are no n-grams.

    Example:
        >>> tokenizer = NgramTokenizer({"wake": 2, "up": 1}, {"wa": 2}, rows=2)
        >>> column = NgramsColumn("text", tokenizer)
        >>> [row.tolist() for row in column.encode(["Wake up!", "No"])]
        [[2, 3, 4], []]
    """

    kind = "ngrams"
    shares = True

    def __init__(self, name: str, tokenizer: Tokenizer, *, limit: int | None = None) -> None:
        if not isinstance(tokenizer, NgramTokenizer):
            raise UserError(
                f"ngrams must be of type fitted_ngrams, but they are a {type(tokenizer).__name__}."
            )
        super().__init__(name, tokenizer)

    @property
    @override
    def fitted(self) -> Mapping[str, Any]:
        return {"ngrams": self.tokenizer}

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        texts = [
            value if isinstance(value, str) else " ".join(words_in(value, self.name, row))
            for row, value in enumerate(values)
        ]
        return super().cut(encode_column(self._encoder, texts, self.name), MOST)

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        """All of them: they are of the whole text, and the limit is that of its words."""
        return encoded
