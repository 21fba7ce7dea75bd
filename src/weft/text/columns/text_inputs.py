"""A text and what stands beside it: the columns that all tasks of documents begin with."""

from collections.abc import Mapping
from typing import Final

from weft.text.columns.column import Column
from weft.text.columns.dictionary import DictionaryColumn, dictionary_column
from weft.text.columns.ids import TextColumn
from weft.text.columns.ngrams import NgramsColumn
from weft.text.columns.number import Numbers, NumbersColumn
from weft.text.columns.words import WordsColumn
from weft.text.dictionary import Dictionary
from weft.text.tokenizer import Tokenizer

__all__ = ["BESIDE_TEXT", "TEXT_KINDS", "text_inputs"]

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
