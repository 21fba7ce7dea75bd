"""The columns that tasks begin with: a text, or words, and what stands beside them.

What a recipe may have beside its text or its words is declared here alone: its name, which is that
of the ingredient, of the column's role and of what the module is called with, and its column.
"""

from collections.abc import Mapping
from typing import Any, Final, TypedDict, Unpack

from textmill.text.columns.column import Column
from textmill.text.columns.dictionary import (
    Dictionary,
    DictionaryColumn,
    GivenKindsColumn,
    Phrases,
    PhrasesColumn,
)
from textmill.text.columns.numbers import Numbers, NumbersColumn
from textmill.text.columns.texts import TextsColumn
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


class BesideText(TypedDict, total=False):
    """What may stand beside a text."""

    dense: Numbers | None
    dictionary: Dictionary | None
    ngrams: Tokenizer | None


class BesideWords(TypedDict, total=False):
    """What may stand beside words."""

    characters: Characters | None
    affixes: Affixes | None
    pieces: WordPieces | None
    dictionary: Dictionary | None
    dense: Numbers | None


TEXT_KINDS: Final[Mapping[str, Any]] = {
    "text": TextColumn | TextsColumn,
    "dense": NumbersColumn,
    "dictionary": DictionaryColumn,
    "ngrams": NgramsColumn,
}
WORD_KINDS: Final[Mapping[str, Any]] = {
    "words": WordsColumn,
    "characters": CharactersColumn,
    "affixes": AffixesColumn,
    "pieces": PiecesColumn,
    "dictionary": DictionaryColumn,
    "dense": NumbersColumn,
}
"""What a column of each role can be."""
BESIDE_TEXT: Final = BesideText.__optional_keys__
BESIDE_WORDS: Final = BesideWords.__optional_keys__


def text_columns(
    tokenizer: Tokenizer,
    *,
    column: str = "text",
    max_length: int | None = None,
    max_texts: int | None = None,
    **beside: Unpack[BesideText],
) -> dict[str, Column]:
    """The columns of a text, or of several, and of what stands beside it, by role."""
    text = _first(TextColumn, column, tokenizer, max_length, max_texts)
    return {"text": text, **columns_beside("text", column, beside)}


def _first(
    kind: type[TextColumn | WordsColumn], name: str, tokenizer: Tokenizer, *most: int | None
) -> Column:
    length, texts = most
    if length is None or texts is None:
        return kind(name, tokenizer, limit=length)
    return TextsColumn(name, tokenizer, length=length, limit=texts)


def word_columns(
    tokenizer: Tokenizer,
    *,
    column: str = "words",
    max_length: int | None = None,
    max_texts: int | None = None,
    **beside: Unpack[BesideWords],
) -> dict[str, Column]:
    """The columns of words, or of texts in their place, and of what stands beside, by role."""
    words = _first(WordsColumn, column, tokenizer, max_length, max_texts)
    return {"words": words, **columns_beside("words", column, beside)}


def columns_beside(role: str, name: str, beside: Mapping[str, Any]) -> dict[str, Column]:
    """The columns of what a recipe has beside the text or words of a role and column, by role."""
    found: dict[str, Column] = {}
    for own, feature in beside.items():
        if isinstance(feature, Numbers):
            found[own] = NumbersColumn(feature.column, feature)
        elif isinstance(feature, Dictionary):
            kind = PhrasesColumn if isinstance(feature, Phrases) else GivenKindsColumn
            found[own] = kind(feature, text=role)
        elif own == "ngrams" and feature is not None:
            found[own] = NgramsColumn(name, feature)
        elif feature is not None:
            found[own] = WORD_KINDS[own](feature)
    return found
