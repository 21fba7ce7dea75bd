"""The words of a text that somebody typed, divided as those of the training data are.

Data for taggers has its words apart: "New York .". A text has not: "New York." How the data has
them is in the words that it knows, so nothing needs to be set: a sign that is a word there, and
that few of the words end with, is a word of its own at the end of an unknown one.
"""

import re
from collections import Counter
from collections.abc import Mapping

from textmill.text.cells import DividedText

SIGNS = frozenset(".,:;!?…%()[]{}<>\"'`´‘’“”„«»¿¡$€£#&*+/=|~_-–—·")  # noqa: RUF001  # signs as they are typed
"""What may be divided from a word, at its beginning or its end, if the data does so."""
ENDS = frozenset(".,")
"""Data that leaves these at its words divides nothing."""
FEW = 0.02
"""Share of the known words that may begin, or end, with a sign which is divided from words. Of
those of UD English EWT 0.6 % end with a full stop (abbreviations), of data of references, which
does not divide them, 20 %."""
CLITIC = re.compile(r"(?:n['\u2019]t|['\u2019](?:s|re|ve|ll|d|m))$", re.IGNORECASE)
"""What English treebanks divide from words, in the data that has it as a word."""
ABBREVIATION = re.compile(r"(?:\w\.)+")
"""Initials and the like, which keep their full stop: "J.", "U.S."."""
MOST = 16
"""Parts that are divided from one word at most: what is longer is no word."""


class RawWords:
    """Divides texts as the data was from which the words are known.

    Args:
        known: The words of the data, as keys.
        lowercase: Whether they are lower-cased.

    Example:
        >>> raw = RawWords(dict.fromkeys(["new", "york", ".", "do", "n't", "u.s."]), lowercase=True)
        >>> raw.divided("Don't go to New York.").parts
        ('Do', "n't", 'go', 'to', 'New', 'York', '.')
    """

    def __init__(self, known: Mapping[str, object], *, lowercase: bool) -> None:
        self._known, self._lowercase = known, lowercase
        alone = {sign for sign in SIGNS if sign in known}
        words = [word for word in known if len(word) > 1 and any(map(str.isalnum, word))]
        words = [word for word in words if not ABBREVIATION.fullmatch(word)]
        begins, ends = (Counter(word[at] for word in words) for at in (0, -1))
        self._before, self._after = (
            {sign for sign in alone if count[sign] <= FEW * len(words)} for count in (begins, ends)
        )
        if self._after.isdisjoint(ENDS):
            self._before, self._after = set[str](), set[str]()

    def divided(self, text: str) -> str:
        """The text with the places of its words; as it is, if they are those of white space.

        A text in which a sign stands alone is taken for one that was divided before.
        """
        words = [match.span() for match in re.finditer(r"\S+", text)]
        signs = self._after | self._before
        if not signs or any(end - start == 1 and text[start] in signs for start, end in words):
            return text
        places = [place for start, end in words for place in self._places(text, start, end)]
        return text if len(places) == len(words) else DividedText(text, places)

    def _places(self, text: str, start: int, end: int) -> list[tuple[int, int]]:
        before, after = list[tuple[int, int]](), list[tuple[int, int]]()
        while len(before) + len(after) < MOST and end - start > 1:
            word = text[start:end]
            if self._knows(word) or ABBREVIATION.fullmatch(word):
                break
            if size := self._ending(word):
                after.append((end - size, end))
                end -= size
            elif word[0] in self._before:
                before.append((start, start + 1))
                start += 1
            else:
                break
        return [*before, (start, end), *reversed(after)]

    def _ending(self, word: str) -> int:
        """Characters of the last part of a word that is divided from it; 0: none is."""
        if (clitic := CLITIC.search(word)) and clitic.start() and self._knows(clitic[0]):
            return len(clitic[0])
        if word[-1] not in self._after:
            return 0
        run = len(word) - len(word.rstrip(word[-1]))  # "..." is one where it is known
        return run if 1 < run < len(word) and self._knows(word[-run:]) else 1

    def _knows(self, word: str) -> bool:
        word = word.replace("\u2019", "'")
        return (word.lower() if self._lowercase else word) in self._known
