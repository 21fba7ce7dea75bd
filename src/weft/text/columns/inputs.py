"""The columns that tasks begin with: a text, or words, and what stands beside them."""

from collections.abc import Mapping
from typing import Final

from weft.errors import UserError
from weft.text.columns.column import Column
from weft.text.columns.dictionary import DictionaryColumn, dictionary_column
from weft.text.columns.ngrams import NgramsColumn
from weft.text.columns.numbers import Numbers, NumbersColumn
from weft.text.columns.token_ids import TextColumn
from weft.text.columns.words import AffixesColumn, CharactersColumn, WordsColumn
from weft.text.features.affixes import Affixes
from weft.text.features.characters import Characters
from weft.text.features.dictionaries import Dictionary
from weft.text.tokenizers.tokenizer import Tokenizer

__all__ = ["BESIDE_TEXT", "BESIDE_WORDS", "TEXT_KINDS", "WORD_KINDS", "text_inputs", "word_inputs"]

BESIDE_TEXT: Final = frozenset({"dense", "dictionary", "ngrams"})
"""The roles that a recipe may leave out, each with the name of the ingredient it is fitted with."""

TEXT_KINDS: Final[Mapping[str, tuple[type[Column], ...]]] = {
    "text": (TextColumn,),
    "dense": (NumbersColumn,),
    "dictionary": (DictionaryColumn,),
    "ngrams": (NgramsColumn,),
}
"""What a column of each role can be."""


def text_inputs(
    tokenizer: Tokenizer,
    *,
    column: str,
    max_length: int | None,
    dense: Numbers | None,
    dictionary: Dictionary | None,
    ngrams: Tokenizer | None,
) -> dict[str, Column]:
    """The columns by role.

    Args:
        tokenizer: Encodes the text.
        column: The column of the text.
        max_length: Most tokens of a text; None is no limit.
        dense: Numbers beside the text; None: there are none.
        dictionary: What is known of words; None: nothing is.
        ngrams: Knows the n-grams of texts; None: the model looks at none.

    Raises:
        UserError: There is a dictionary, but the tokenizer's tokens are no words.
    """
    inputs: dict[str, Column] = {"text": TextColumn(column, tokenizer, limit=max_length)}
    if dense is not None:
        inputs["dense"] = NumbersColumn(dense.column, dense)
    if dictionary is not None:
        WordsColumn(column, tokenizer)  # refuses tokens that are no words
        inputs["dictionary"] = dictionary_column(dictionary, column=column, text="text")
    if ngrams is not None:
        inputs["ngrams"] = NgramsColumn(column, ngrams)
    return inputs


BESIDE_WORDS: Final = frozenset({"characters", "affixes", "dictionary"})
"""The roles that a recipe may leave out, each with the name of the ingredient it is fitted with."""

WORD_KINDS: Final[Mapping[str, tuple[type[Column], ...]]] = {
    "words": (WordsColumn,),
    "characters": (CharactersColumn,),
    "affixes": (AffixesColumn,),
    "dictionary": (DictionaryColumn,),
}
"""What a column of each role can be."""


def word_inputs(
    tokenizer: Tokenizer,
    *,
    column: str,
    max_length: int | None,
    characters: Characters | None = None,
    affixes: Affixes | None = None,
    dictionary: Dictionary | None = None,
) -> dict[str, Column]:
    """The columns by role.

    Args:
        tokenizer: Of words.
        column: The column of the words.
        max_length: Most words of a row; None is no limit.
        characters: The known characters; None: the model looks at none.
        affixes: The known beginnings, endings and shapes; None: the model looks at none.
        dictionary: What is known of words; None: nothing is.

    Raises:
        UserError: The characters or the affixes are those of another column.
    """
    inputs: dict[str, Column] = {"words": WordsColumn(column, tokenizer, limit=max_length)}
    if characters is not None:
        inputs["characters"] = CharactersColumn(characters)
    if affixes is not None:
        inputs["affixes"] = AffixesColumn(affixes)
    for role, beside in inputs.items():
        if beside.name != column:
            raise UserError(
                f"The {role} must be those of the words in '{column}', but are of "
                f"'{beside.name}': set {role}.column={column}."
            )
    if dictionary is not None:
        inputs["dictionary"] = dictionary_column(dictionary, column=column, text="words")
    return inputs
