"""Words that a vocabulary does not have, given back to an answer from the text that it is of."""

from collections.abc import Iterator, Sequence

from weft.text.tokenizer import UNKNOWN
from weft.text.words import WordTokenizer

__all__ = ["unknown_words", "with_unknown"]


def unknown_words(tokenizer: WordTokenizer, text: str) -> list[str]:
    """The words of a text that have no id, as they are written there, in order.

    Example:
        >>> tokenizer = WordTokenizer.Config(words=("wake", "up")).build()
        >>> unknown_words(tokenizer, "Wake Ann up , Bo")
        ['Ann', ',', 'Bo']
    """
    words, places = tokenizer.words(text), tokenizer.places(text)
    return [
        text[start:end]
        for word, (start, end) in zip(words, places, strict=True)
        if word not in tokenizer.numbers
    ]


def with_unknown(answer: str, words: Sequence[str]) -> str:
    """An answer whose first unknown word is the first of ``words``, and so on.

    Where there are more in the answer than in ``words``, they stay.

    Example:
        >>> with_unknown("[IN:WAKE wake [SL:NAME \u2047 ] \u2047 ]", ["Ann"])
        '[IN:WAKE wake [SL:NAME Ann ] \u2047 ]'
    """
    left: Iterator[str] = iter(words)
    return " ".join(next(left, UNKNOWN) if word == UNKNOWN else word for word in answer.split(" "))
