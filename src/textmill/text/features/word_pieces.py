"""The pieces of words: what a pretrained encoder reads where labels are of words."""

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.errors import UserError
from textmill.text import registries
from textmill.text.metadata import Saved
from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer
from textmill.text.tokenizers.pretrained import PretrainedTokenizer, tokenizer_of
from textmill.text.tokenizers.tokenizer import Tokenizer, VocabInfo

MOST = 64
"""Places of a word: every word has as many."""


class WordPieces(Saved):
    """A tokenizer of pieces, and how many places a word has for them.

    Args:
        tokenizer: Cuts each word by itself.
        length: Places of a word. Of a longer word the first pieces are kept.
        column: The column of the rows that the words are in.

    Raises:
        UserError: There are too few places, or too many.
    """

    def __init__(self, tokenizer: Tokenizer, *, length: int = 8, column: str = "words") -> None:
        if not 1 <= length <= MOST:
            raise UserError(f"pieces.length must be from 1 to {MOST}, but is {length}.")
        self.tokenizer, self.length, self.column = tokenizer, length, column
        self._encoder = tokenizer.create_encoder(mode="target")
        self._before = len(tokenizer.target_prefix())

    @property
    def vocab_info(self) -> VocabInfo:
        """Size and special ids of the pieces."""
        return self.tokenizer.vocab_info

    @property
    def pad_idx(self) -> int:
        """The id of padding."""
        return self.vocab_info.pad_idx

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The ids of words, the unknown one where there is none. *Shape:* ``[N, length]``."""
        rows = self._encoder.batch([f"{self.tokenizer.before_word}{word}" for word in words])
        out = np.full((len(words), self.length), self.pad_idx, dtype=np.int32)
        for number, row in enumerate(rows):
            pieces = row[self._before : -1][: self.length]
            out[number, : max(1, len(pieces))] = pieces if len(pieces) else self.vocab_info.unk_idx
        return out


@registries.pieces.register("pretrained")
class PretrainedPieces(Component):
    """The pieces of the tokenizer of ``model.encoder.path``, word by word."""

    class Config(BaseConfig):
        """Where they come from."""

        path: Path | None = None
        """The file tokenizer.json; null is that of ``model.encoder.path``."""
        column: str = "words"
        """The column of the rows."""
        length: int = 8
        """Places of a word for its pieces; of a longer word the first are kept."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, model: Any = None
        ) -> WordPieces:
            """Reads the tokenizer.

            Raises:
                UserError: There is none.
            """
            path = tokenizer_of(model) if self.path is None else self.path
            tokenizer = PretrainedTokenizer(PretrainedTokenizer.Config(path=path))
            return WordPieces(tokenizer, length=self.length, column=self.column)


@registries.pieces.register("fitted")
class FittedPieces(Component):
    """The words and punctuation of sentences, as they occur in a column of ``train_data``."""

    class Config(BaseConfig):
        """Which are known."""

        column: str = "words"
        """The column of the rows."""
        length: int = MOST
        """Places of a sentence for its words; of a longer one the first are kept."""
        vocab_size: int = 10_000
        """Most words that are known."""
        min_count: int = 2
        """How often a word must occur; a rarer one is the unknown word."""
        lowercase: bool = True
        """Whether words are written small first."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> WordPieces:
            """Reads the rows once."""
            words = FittedTokenizer.Config(
                kind="words",
                columns=(self.column,),
                vocab_size=self.vocab_size,
                min_count=self.min_count,
                lowercase=self.lowercase,
            )
            tokenizer: Tokenizer = words.build(train_data=train_data)
            return WordPieces(tokenizer, length=self.length, column=self.column)
