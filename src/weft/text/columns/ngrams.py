"""The column of the n-grams of a text, beside the text itself."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Self

from typing_extensions import override

from weft.errors import UserError
from weft.text.columns.column import columns
from weft.text.columns.token_ids import IdsColumn
from weft.text.columns.words import joined_words
from weft.text.ragged import Ragged
from weft.text.tokenizers.ngram_tokenizer import NgramTokenizer
from weft.text.tokenizers.tokenizer import Tokenizer, encode_column, load_tokenizer

__all__ = ["MOST", "NgramsColumn"]

MOST = 8192
"""N-grams of a text: those of a thousand words. A longer one loses its rarest."""


@columns.register("ngrams")
class NgramsColumn(IdsColumn):
    """The known n-grams of a text, each once; it shares the text's column.

    Args:
        name: The column of the text.
        tokenizer: Knows the n-grams.

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

    def __init__(self, name: str, tokenizer: Tokenizer) -> None:
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
        texts = joined_words(values, self.name)
        return super().cut(encode_column(self._encoder, texts, self.name), MOST)

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> Self:
        return cls(settings["name"], load_tokenizer(folder / "tokenizer"))

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        """All of them: they are of the whole text, and the limit is that of its words."""
        return encoded
