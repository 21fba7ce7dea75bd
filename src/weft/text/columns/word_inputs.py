"""Words and what is known of each beside its id: the columns that all tasks of words begin with."""

from collections.abc import Mapping
from typing import Final

from weft.errors import UserError
from weft.text.affixes import Affixes
from weft.text.characters import Characters
from weft.text.columns.column import Column
from weft.text.columns.dictionary import DictionaryColumn, dictionary_column
from weft.text.columns.words import AffixesColumn, CharactersColumn, WordsColumn
from weft.text.dictionary import Dictionary
from weft.text.tokenizer import Tokenizer

__all__ = ["BESIDE_WORDS", "WORD_KINDS", "word_inputs"]

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
