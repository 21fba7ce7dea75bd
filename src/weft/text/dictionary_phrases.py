"""A dictionary of phrases with a kind each (a gazetteer), found in the texts themselves."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from typing_extensions import override

from weft.config import registries
from weft.config.component import Component
from weft.config.component import Config as BaseConfig
from weft.errors import DataError, UserError
from weft.text.cells import words_in
from weft.text.dictionary import Dictionary, Finding

__all__ = ["Phrases", "PhrasesOfFile", "read_phrases"]

MOST_WORDS = 100
"""Of a phrase: each word of a text is looked up with as many behind it."""


class Phrases(Dictionary):
    """Phrases of words, each of one kind or several.

    The longest phrase wins, from the first word on: no word is in two. Every word of a phrase has
    its kinds, with weight 1.

    Args:
        pairs: A kind and a phrase, in any order; white space divides the phrase's words.
        column: The column of the text.
        lowercase: Whether case does not matter.

    Raises:
        UserError: There is no phrase, or one has no word, too many words, or no kind.

    Example:
        >>> phrases = Phrases([("city", "New York"), ("paper", "new york times"), ("city", "Ur")])
        >>> [(place, phrases.kinds[kind - 1]) for place, kind, _ in phrases.find("in New York", 0)]
        [(1, 'city'), (2, 'city')]
        >>> [place for place, _, _ in phrases.find("The New York Times of Ur", 0)]
        [1, 2, 3, 5]
    """

    def __init__(
        self, pairs: Iterable[tuple[str, str]], *, column: str = "text", lowercase: bool = True
    ) -> None:
        self.lowercase = lowercase
        known: dict[str, dict[str, None]] = {}
        self._longest: dict[str, int] = {}
        for kind, phrase in pairs:
            words = self._words(phrase)
            if not words or not kind.strip() or {"\t", "\n"} & {*kind}:
                raise UserError(
                    "A phrase must have a kind, without tab or line end, and a word at least, but "
                    f"one is {phrase!r:.80} of the kind {kind!r:.80}."
                )
            if len(words) > MOST_WORDS:
                raise UserError(
                    f"A phrase must have at most {MOST_WORDS} words, but one has {len(words)}: "
                    f"{phrase!r:.80}."
                )
            known.setdefault(" ".join(words), {})[kind] = None
            longest = self._longest.get(words[0], 0)
            self._longest[words[0]] = max(longest, len(words))
        self.known = {phrase: tuple(kinds) for phrase, kinds in known.items()}
        """The kinds of each phrase; one space is between two of its words."""
        super().__init__(
            dict.fromkeys(k for kinds in self.known.values() for k in kinds), column=column
        )

    def pairs(self) -> Iterator[tuple[str, str]]:
        """Each kind and phrase: what the constructor takes."""
        return ((kind, phrase) for phrase, kinds in self.known.items() for kind in kinds)

    @override
    def find(self, value: Any, row: int) -> list[Finding]:
        words = [self._small(word) for word in words_in(value, self.column, row)]
        found, place = list[Finding](), 0
        while place < len(words):
            after, kinds = self._longest_at(words, place)
            found += [
                Finding(at, self.numbers[kind], 1.0) for at in range(place, after) for kind in kinds
            ]
            place = after
        return found

    def _longest_at(self, words: list[str], place: int) -> tuple[int, tuple[str, ...]]:
        """Where the longest phrase from a word on ends, and its kinds; none is the word alone."""
        longest = self._longest.get(words[place], 0)
        for after in range(min(place + longest, len(words)), place, -1):
            if kinds := self.known.get(" ".join(words[place:after])):
                return after, kinds
        return place + 1, ()

    def _small(self, text: str) -> str:
        return text.lower() if self.lowercase else text

    def _words(self, phrase: str) -> list[str]:
        return self._small(phrase).split()


@registries.dictionaries.register("phrases")
class PhrasesOfFile(Component):
    """The phrases of a file, found in a text by themselves; they are saved with the run."""

    class Config(BaseConfig):
        """Where the phrases are."""

        path: Path
        """A text file with a kind, a tab and a phrase in each line."""
        column: str = "text"
        """The column of the text that they are found in."""
        lowercase: bool = True
        """Whether case does not matter."""

        @override
        def build(self) -> Phrases:  # type: ignore[override]  # it needs no other ingredient
            """Reads the file.

            Raises:
                UserError: There is no such file, or it has no phrase.
                DataError: A line is none of a kind and a phrase.
            """
            pairs = read_phrases(self.path)
            return Phrases(pairs, column=self.column, lowercase=self.lowercase)

    def __init__(self, config: Config) -> None:
        self.config = config


def read_phrases(path: Path) -> list[tuple[str, str]]:
    r"""Kinds and phrases of a file; empty lines are passed over.

    Raises:
        UserError: The file cannot be read, or has no phrase.
        DataError: A line is none of a kind and a phrase, or the file is no UTF-8; names the line,
            from 1.

    Example:
        >>> import tempfile
        >>> path = Path(tempfile.mkdtemp()) / "places.tsv"
        >>> _ = path.write_text("city\tNew York\n\nriver\tPo\n")
        >>> read_phrases(path)
        [('city', 'New York'), ('river', 'Po')]
    """
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise UserError(
            f"dictionary.path: the phrases of {path} cannot be read: {error.strerror}."
        ) from None
    pairs = []
    for number, line in enumerate(raw.removeprefix(b"\xef\xbb\xbf").split(b"\n"), 1):
        try:
            text = line.decode()
        except UnicodeDecodeError:
            raise DataError(f"{path}:{number}: the line is no UTF-8.") from None
        kind, _, phrase = (part.strip() for part in text.partition("\t"))
        if kind and phrase:
            pairs.append((kind, phrase))
        elif text.strip():
            raise DataError(
                f"{path}:{number}: wanted a kind, a tab and a phrase, found {text.strip()!r:.80}."
            )
    if not pairs:
        raise UserError(f"{path} has no phrase: wanted a kind, a tab and a phrase in each line.")
    return pairs
