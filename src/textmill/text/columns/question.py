"""Columns of questions: passages, what a context shares with its question, and answers."""

from collections.abc import Sequence
from itertools import chain
from typing import Any, ClassVar

from typing_extensions import override

from textmill.errors import DataError
from textmill.text.columns.column import Column, columns
from textmill.text.columns.token_ids import TextColumn
from textmill.text.features.passages import TokenizedPassage, read_passages
from textmill.text.features.slots import text_of
from textmill.text.ragged import Ragged

STEM = 5
"""Letters that two words share where they are taken for forms of one; shorter words have none."""


@columns.register("passage")
class PassageColumn(TextColumn):
    """Text as the ids of tokens that know their places. A text can have none.

    Example:
        >>> from textmill.text.tokenizers.word_tokenizer import WordTokenizer
        >>> tokenizer = WordTokenizer.Config(words=("who", "?"), split="punctuation").build()
        >>> PassageColumn("question", tokenizer).encode(["Who won?"])[0].tolist()
        [2, 1, 3]
    """

    kind = "passage"

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        texts = [
            value if isinstance(value, TokenizedPassage) else text_of(value, self.name, row)
            for row, value in enumerate(values)
        ]
        read = iter(
            read_passages(self.tokenizer, [text for text in texts if isinstance(text, str)])
        )
        return Ragged.from_lists([(next(read) if isinstance(t, str) else t).ids for t in texts])


@columns.register("matches")
class MatchesColumn(Column):
    """How far each token of a context is one of its question; a value is the tokens of both.

    3: it is there as it is written; 2: in other cases of its letters; 1: a word with the same first
    five letters is; 0: none of these. Known words and others alike: names that training never saw
    are found by it.

    Source: Chen et al. 2017, "Reading Wikipedia to Answer Open-Domain Questions" (DrQA), section
    3.2, whose third feature is the lemma.

    Example:
        >>> question, context = ["Who", "led", "normans"], ["Rollo", "led", "the", "Norman", "men"]
        >>> MatchesColumn("matches").encode([(question, context)])[0].tolist()
        [0, 3, 0, 1, 0]
    """

    kind = "matches"
    levels: ClassVar[int] = 4
    """How many numbers there are, from 0."""
    sorted = False

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = []
        for row, value in enumerate(values):
            if not isinstance(value, tuple) or len(value) != 2:
                raise DataError(
                    f"Row {row}, column '{self.name}': wanted the tokens of a question and of its "
                    f"context, found {value!r:.80}."
                )
            rows.append(_matches(*value))
        return Ragged.from_lists(rows)


def _matches(question: Sequence[str], context: Sequence[str]) -> list[int]:
    written, small = set(question), {word.lower() for word in question}
    stems = {word[:STEM] for word in small if len(word) >= STEM}
    found = []
    for word in context:
        lower = word.lower()
        known = (lower[:STEM] in stems, lower in small, word in written)
        found.append(3 if known[2] else 2 if known[1] else int(known[0]))
    return found


@columns.register("answers")
class AnswersColumn(Column):
    """The right answers of each row: the first and the last token of each; none has no answer.

    Args:
        name: The column of the answers' texts.
        starts: That of the characters they begin at.

    Example:
        >>> AnswersColumn("answers").encode([[(3, 4), (3, 3)], []])[0].tolist()
        [3, 4, 3, 3]
    """

    kind = "answers"
    sorted = False
    pad = -1  # no token has this number
    width = 2

    def __init__(self, name: str, starts: str = "answer_starts") -> None:
        super().__init__(name)
        self.starts = starts

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        for row, spans in enumerate(values):
            for first, last in spans:
                if not 0 <= first <= last:
                    raise DataError(
                        f"Row {row}, column '{self.name}': an answer cannot have the first token "
                        f"{first} and the last {last}."
                    )
        return Ragged.from_lists([[*chain.from_iterable(spans)] for spans in values])
