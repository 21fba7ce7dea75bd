"""Sentences of texts, and the reference summaries that they are compared with."""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

from textmill.errors import DataError
from textmill.text.cells import list_in, unlisted
from textmill.text.tokenizers.tokenizer import not_text

_MARKS = r"[\"'()\[\]\u2018\u2019\u201c\u201d]*+"
# What ends in full stops is looked at once: a match begins at the first of them.
_END = re.compile(
    rf"(?<![.!?])[.!?]++{_MARKS}(?=\s++{_MARKS}(\w))|[\u3002\uff01\uff1f]++|\n\s*?\n|$"
)
_NO_END = re.compile(
    r"(?:^|[\s(\[])(?:[A-Z]|(?i:e\.g|i\.e|cf|vs|al|etc|approx|resp|figs?|eqs?|secs?|nos|vol|pp?|eds?|"
    r"dr|mrs?|ms|prof|jr|sr|inc|ltd))\.$"
)
"""The end of a text whose full stop belongs to an abbreviation or an initial."""
LONGEST_WORD = 9
"""Characters of the longest abbreviation, with the character before it."""
_WORD = re.compile(r"[^\W_]+")


class Sentences(NamedTuple):
    """A text and its sentences by their characters, from the first to before the last."""

    text: str
    places: list[tuple[int, int]]

    @property
    def texts(self) -> list[str]:
        return [self.text[start:end] for start, end in self.places]


def sentence_places(text: str) -> list[tuple[int, int]]:
    """Where each sentence begins and ends, without the white space between two.

    A sentence ends at an empty line, and with a full stop, exclamation or question mark before a
    word that does not begin with a small letter, unless it ends an abbreviation or an initial.
    """
    found, start = list[tuple[int, int]](), 0
    for match in _END.finditer(text):
        end, opens = match.end(), match[1]
        if opens and (opens.islower() or _NO_END.search(text, max(start, end - LONGEST_WORD), end)):
            continue
        sentence = text[start:end]
        if stripped := sentence.strip():
            begin = start + len(sentence) - len(sentence.lstrip())
            found.append((begin, begin + len(stripped)))
        start = end
    return found


def read_sentences(value: Any, column: str, row: int) -> Sentences:
    """The sentences of one cell: a list as it is, a text cut at its sentences' ends."""
    parts = unlisted(value)
    listed = [parts] if isinstance(parts, str) else parts
    is_list = isinstance(listed, Sequence) and all(isinstance(part, str) for part in listed)
    if not is_list or isinstance(listed, bytes):
        raise DataError(
            f"Row {row}, column '{column}': wanted text or a list of sentences, "
            f"found {type(parts).__name__}."
        )
    if error := not_text(listed, column=column, first=row):
        raise error
    if isinstance(parts, str):
        return Sentences(parts, sentence_places(parts))
    places, start = list[tuple[int, int]](), 0
    for part in listed:
        if part.strip():
            places.append((start, start + len(part)))
        start += len(part) + 1
    return Sentences(" ".join(listed), places)


def overlap(sentence: str, references: Sequence[str]) -> float:
    """How much a sentence shares with that reference which it shares most with, from 0 to 1.

    It is the mean of the F1 of words and that of pairs of neighbouring words: of ROUGE-1 and
    ROUGE-2 (Lin 2004).
    """
    grams = _grams(sentence)
    return max(
        (
            sum(_f1(one, other) for one, other in zip(grams, _grams(text), strict=True)) / 2
            for text in references
        ),
        default=0.0,
    )


def _grams(text: str) -> tuple[Counter[Any], Counter[Any]]:
    words = _WORD.findall(text.lower())
    return Counter(words), Counter(pairwise(words))


def _f1(one: Counter[Any], other: Counter[Any]) -> float:
    shared = (one & other).total()
    return 2 * shared / (one.total() + other.total()) if shared else 0.0


REFERENCES = "references"
"""The column of all right summaries of a row."""


def references_of(row: Mapping[str, Any], number: int) -> list[str]:
    """The references of a row, one or more.

    Example:
        >>> references_of({"references": '["Rain.", "It rains."]'}, 0)
        ['Rain.', 'It rains.']
    """
    given = row[REFERENCES]
    found = list_in(given)
    if not (isinstance(found, list) and all(isinstance(text, str) for text in found)):
        raise DataError(
            f"Row {number}, column '{REFERENCES}': wanted a list of texts, or one as JSON, found "
            f"{given!r:.80}. For JSON lines, set valid_data.lists=[{REFERENCES}]."
        )
    kept = [text for text in found if text.strip()]
    if not kept:
        raise DataError(
            f"Row {number}, column '{REFERENCES}': wanted one text or more, found {given!r:.80}."
        )
    return kept
