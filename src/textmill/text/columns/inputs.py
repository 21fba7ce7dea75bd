"""The columns that tasks begin with: a text, or words, and what stands beside them."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Final

from textmill.text.columns.column import Column, ColumnKind
from textmill.text.columns.dictionary import DictionaryColumn, GivenKindsColumn, PhrasesColumn
from textmill.text.columns.numbers import Numbers, NumbersColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.columns.words import (
    AffixesColumn,
    CharactersColumn,
    NgramsColumn,
    PiecesColumn,
    WordsColumn,
)
from textmill.text.features.dictionaries import Dictionary, Phrases
from textmill.text.features.spelling import Affixes, Characters
from textmill.text.features.word_pieces import WordPieces
from textmill.text.tokenizers.tokenizer import Tokenizer


@dataclass(frozen=True, kw_only=True)
class TextFeatures:
    """What stands beside a text, each an ingredient that a recipe may leave out."""

    dense: Numbers | None = None
    """Numbers of the row."""
    dictionary: Dictionary | None = None
    """What is known of its words."""
    ngrams: Tokenizer | None = None
    """Knows its n-grams."""


@dataclass(frozen=True, kw_only=True)
class WordFeatures:
    """What stands beside words, each an ingredient that a recipe may leave out."""

    characters: Characters | None = None
    """The known characters."""
    affixes: Affixes | None = None
    """The known beginnings, endings and shapes."""
    pieces: WordPieces | None = None
    """Their pieces, for a pretrained encoder."""
    dictionary: Dictionary | None = None
    """What is known of the words."""


BESIDE_TEXT: Final = frozenset(field.name for field in fields(TextFeatures))
BESIDE_WORDS: Final = frozenset(field.name for field in fields(WordFeatures))
"""The roles that a recipe may leave out, each with the name of the ingredient it is fitted with."""

TEXT_KINDS: Final[Mapping[str, ColumnKind]] = {
    "text": TextColumn,
    "dense": NumbersColumn,
    "dictionary": DictionaryColumn,
    "ngrams": NgramsColumn,
}
WORD_KINDS: Final[Mapping[str, ColumnKind]] = {
    "words": WordsColumn,
    "characters": CharactersColumn,
    "affixes": AffixesColumn,
    "pieces": PiecesColumn,
    "dictionary": DictionaryColumn,
}
"""What a column of each role can be."""


def text_columns(
    tokenizer: Tokenizer,
    *,
    column: str = "text",
    max_length: int | None = None,
    beside: TextFeatures | None = None,
) -> dict[str, Column]:
    """The columns of a text, and of what stands beside it, by role."""
    beside = beside or TextFeatures()
    found: dict[str, Column] = {"text": TextColumn(column, tokenizer, limit=max_length)}
    if beside.dense is not None:
        found["dense"] = NumbersColumn(beside.dense.column, beside.dense)
    if beside.dictionary is not None:
        found["dictionary"] = _dictionary(beside.dictionary, "text")
    if beside.ngrams is not None:
        found["ngrams"] = NgramsColumn(column, beside.ngrams)
    return found


def word_columns(
    tokenizer: Tokenizer,
    *,
    column: str = "words",
    max_length: int | None = None,
    beside: WordFeatures | None = None,
) -> dict[str, Column]:
    """The columns of words, and of what stands beside them, by role.

    Raises:
        UserError: The tokenizer's tokens are no words.
    """
    beside = beside or WordFeatures()
    found: dict[str, Column] = {"words": WordsColumn(column, tokenizer, limit=max_length)}
    if beside.characters is not None:
        found["characters"] = CharactersColumn(beside.characters)
    if beside.affixes is not None:
        found["affixes"] = AffixesColumn(beside.affixes)
    if beside.pieces is not None:
        found["pieces"] = PiecesColumn(beside.pieces)
    if beside.dictionary is not None:
        found["dictionary"] = _dictionary(beside.dictionary, "words")
    return found


def _dictionary(dictionary: Dictionary, text: str) -> DictionaryColumn:
    """The column of what a dictionary knows of the words in the column of a role."""
    kind = PhrasesColumn if isinstance(dictionary, Phrases) else GivenKindsColumn
    return kind(dictionary, text=text)
