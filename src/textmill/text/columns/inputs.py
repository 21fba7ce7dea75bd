"""The columns that tasks begin with: a text, or words, and what stands beside them."""

from collections.abc import Mapping
from typing import Final

from textmill.text.columns.column import Column, ColumnKind
from textmill.text.columns.dictionary import (
    Dictionary,
    DictionaryColumn,
    GivenKindsColumn,
    Phrases,
    PhrasesColumn,
)
from textmill.text.columns.numbers import Numbers, NumbersColumn
from textmill.text.columns.token_ids import TextColumn
from textmill.text.columns.words import (
    AffixesColumn,
    CharactersColumn,
    NgramsColumn,
    PiecesColumn,
    WordsColumn,
)
from textmill.text.features.spelling import Affixes, Characters, WordPieces
from textmill.text.tokenizers.tokenizer import Tokenizer

BESIDE_TEXT: Final = frozenset({"dense", "dictionary", "ngrams"})
BESIDE_WORDS: Final = frozenset({"affixes", "characters", "dictionary", "pieces"})
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
    dense: Numbers | None = None,
    dictionary: Dictionary | None = None,
    ngrams: Tokenizer | None = None,
) -> dict[str, Column]:
    """The columns of a text, and of what stands beside it, by role."""
    found: dict[str, Column] = {"text": TextColumn(column, tokenizer, limit=max_length)}
    if dense is not None:
        found["dense"] = NumbersColumn(dense.column, dense)
    if dictionary is not None:
        found["dictionary"] = _dictionary(dictionary, "text")
    if ngrams is not None:
        found["ngrams"] = NgramsColumn(column, ngrams)
    return found


def word_columns(
    tokenizer: Tokenizer,
    *,
    column: str = "words",
    max_length: int | None = None,
    characters: Characters | None = None,
    affixes: Affixes | None = None,
    pieces: WordPieces | None = None,
    dictionary: Dictionary | None = None,
) -> dict[str, Column]:
    """The columns of words, and of what stands beside them, by role."""
    found: dict[str, Column] = {"words": WordsColumn(column, tokenizer, limit=max_length)}
    if characters is not None:
        found["characters"] = CharactersColumn(characters)
    if affixes is not None:
        found["affixes"] = AffixesColumn(affixes)
    if pieces is not None:
        found["pieces"] = PiecesColumn(pieces)
    if dictionary is not None:
        found["dictionary"] = _dictionary(dictionary, "words")
    return found


def _dictionary(dictionary: Dictionary, text: str) -> DictionaryColumn:
    """The column of what a dictionary knows of the words in the column of a role."""
    kind = PhrasesColumn if isinstance(dictionary, Phrases) else GivenKindsColumn
    return kind(dictionary, text=text)
