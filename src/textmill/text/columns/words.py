"""Columns of words: an id for each, and beside it their characters, affixes and n-grams."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.errors import UserError
from textmill.text.cells import joined_text, unlisted, words_in
from textmill.text.columns.column import Column, columns, places_in, texts_of
from textmill.text.columns.token_ids import IdsColumn, encoded_one
from textmill.text.features.raw_words import RawWords
from textmill.text.features.spelling import Affixes, Characters, WordPieces
from textmill.text.ragged import Ragged, offsets_of
from textmill.text.tokenizers.ngram_tokenizer import NgramTokenizer
from textmill.text.tokenizers.tokenizer import Tokenizer, encode_column
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

KEPT, LONGEST_KEPT = 1 << 12, 128
"""Words whose parts a column remembers, each of some 200 bytes, and characters of one."""


def check_words(name: str, tokenizer: Tokenizer, *, marked: bool = False) -> None:
    """Refuses a tokenizer whose tokens are not the words of a text, but for its end if marked."""
    if not isinstance(tokenizer, WordTokenizer) or tokenizer.config.marks > marked:
        with_marks = " with marks" if isinstance(tokenizer, WordTokenizer) else ""
        raise UserError(
            f"The column '{name}' needs a tokenizer with one id for each word and no other: "
            f"tokenizer.type=fitted_words. Found a {type(tokenizer).__name__}{with_marks}."
        )
    if tokenizer.config.split != "space":
        raise UserError(
            f"The words of the column '{name}' are those that white space divides, but "
            f"tokenizer.split is {tokenizer.config.split}. Set tokenizer.split=space."
        )


def joined_words(values: Sequence[Any], name: str) -> list[str]:
    """Cells of text, or of lists of words, as text."""
    cells = enumerate(values)
    return [v if isinstance(v, str) else " ".join(words_in(v, name, row)) for row, v in cells]


@columns.register("words")
class WordsColumn(IdsColumn):
    """Words, one id for each: a text split at white space, or a list. A text can have none."""

    kind = "words"

    def __init__(self, name: str, tokenizer: Tokenizer, *, limit: int | None = None) -> None:
        check_words(name, tokenizer)
        super().__init__(name, tokenizer, limit=limit)

    @cached_property
    def raw_words(self) -> RawWords:
        """How a text that somebody typed is divided into words."""
        assert isinstance(self.tokenizer, WordTokenizer), "others are refused"
        config = self.tokenizer.config
        return RawWords(self.tokenizer.numbers, lowercase=config.lowercase)

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        texts = joined_words([*map(unlisted, values)], self.name)
        return encode_column(self._encoder, texts, self.name)

    @override
    def encode_one(self, value: Any) -> NDArray[np.int64] | None:
        if type(self) is not WordsColumn:
            return None
        return encoded_one(self._encoder, joined_words([unlisted(value)], self.name)[0])


class WordPartsColumn(Column):
    """Base of columns that have several ids of each word; they share the words' column.

    Args:
        feature: Knows the ids of words, and the column.
        name: The column, if it is not the feature's.
    """

    shares = True

    def __init__(
        self, feature: Characters | Affixes | WordPieces, *, name: str | None = None
    ) -> None:
        super().__init__(feature.column if name is None else name, **{self.kind: feature})
        self.feature, self.width = feature, feature.length
        self._known: dict[str, bytes] = {}

    @override
    def check_beside(self, role: str, columns: Mapping[str, Column]) -> None:
        names = [c.name for c in columns.values() if isinstance(c, IdsColumn) and not c.shares]
        if names and self.name not in names:
            raise UserError(
                f"The {role} must be those of the words in '{names[0]}', but are of "
                f"'{self.name}': set {role}.column={names[0]}."
            )

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [words_in(value, self.name, row) for row, value in enumerate(values)]
        words = [word for row in rows for word in row]
        lengths = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows)) * self.width
        return Ragged(self._ids(words), offsets_of(lengths))

    @override
    def encode_one(self, value: Any) -> NDArray[np.int64] | None:
        if type(self).encode is not WordPartsColumn.encode:
            return None
        ids = self._ids(words_in(value, self.name, 0)).astype(np.int64)
        return places_in(ids[None], self)[0] if len(ids) else None

    def _ids(self, words: list[str]) -> NDArray[np.int32]:
        """The ids of each word. Each different one is asked for once: few are most of any text."""
        known, different = self._known, dict.fromkeys(words)
        new = [word for word in different if word not in known]
        if len(known) + len(new) > KEPT:
            known, new = {}, [*different]
        if new:
            rows = zip(new, self.feature.table(new), strict=True)
            known.update((word, ids.tobytes()) for word, ids in rows)
            # A batch of too many different words, or with a very long one, is not remembered.
            few = len(known) <= KEPT and max(map(len, new)) <= LONGEST_KEPT
            self._known = known if few else {}
        # Joining bytes is faster than joining arrays.
        return np.frombuffer(bytearray().join([known[word] for word in words]), np.int32)


@columns.register("characters")
class CharactersColumn(WordPartsColumn):
    """The characters of each word, in as many places for every word."""

    kind = "characters"
    feature: Characters


@columns.register("affixes")
class AffixesColumn(WordPartsColumn):
    """The affixes of each word, in as many places for every word."""

    kind = "affixes"
    feature: Affixes


@columns.register("pieces")
class PiecesColumn(WordPartsColumn):
    """The pieces of each word, in as many places for every word."""

    kind = "pieces"
    feature: WordPieces


MOST_NGRAMS = 8192
"""N-grams of a text: those of a thousand words. A longer one loses its rarest."""


@columns.register("ngrams")
class NgramsColumn(IdsColumn):
    """The known n-grams of a text, each once; it shares the text's column."""

    kind = ingredient = "ngrams"
    shares = True

    def __init__(self, name: str, tokenizer: Tokenizer) -> None:
        if not isinstance(tokenizer, NgramTokenizer):
            raise UserError(
                f"ngrams must be of type fitted_ngrams, but they are a {type(tokenizer).__name__}."
            )
        super().__init__(name, tokenizer)

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        texts = texts_of([*map(joined_text, values)], self.name)
        return super().cut(encode_column(self._encoder, texts, self.name), MOST_NGRAMS)

    @override
    def encode_one(self, value: Any) -> NDArray[np.int64] | None:
        ids = encoded_one(self._encoder, value) if type(self) is NgramsColumn else None
        return None if ids is None else ids[:MOST_NGRAMS]

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        return encoded
