"""Parts of words as ids: their characters, beginnings, endings and shapes, and their pieces."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import UserError
from textmill.text import registries
from textmill.text.cells import read_training, words_in
from textmill.text.metadata import Saved, refuse_twice
from textmill.text.tokenizers.tokenizer import Tokenizer, VocabInfo

PAD, UNK, BEGIN, END, FIRST = 0, 1, 2, 3, 4
LEAST = 4
"""Places of a word: its two marks and two characters."""
MOST = 1_000
"""Places of a word: ten times the longest word of a language, and 4 kB for each word that differs;
a saved file that says more would take the memory."""


class Characters(Saved):
    """The known characters, and how many places a word has for them and for its two marks.

    Args:
        known: Each once, in the order of their ids; they begin at 4, after padding, the unknown
            character and the marks before and after a word.
        length: Places of a word. A longer word keeps its first and its last characters.
    """

    pad_idx = PAD
    """The id of padding."""

    def __init__(self, known: Iterable[str], *, length: int = 16, column: str = "words") -> None:
        self.known, self.length, self.column = tuple(known), length, column
        self._ids = {character: FIRST + i for i, character in enumerate(self.known)}
        wrong = next((c for c in self.known if len(c) != 1), None)
        if wrong is not None:
            raise UserError(f"A known character must be one character, but one is {wrong!r:.80}.")
        refuse_twice(self.known, "Known characters")
        if not LEAST <= length <= MOST:
            raise UserError(
                f"characters.length must be from {LEAST} to {MOST}, but is {length}: every word "
                "has that many places, two of them for its marks; a longer word keeps its first "
                "and last characters."
            )

    @property
    def size(self) -> int:
        return FIRST + len(self.known)

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The ids of words. *Shape:* ``[len(words), length]``."""
        out = np.full((len(words), self.length), PAD, dtype=np.int32)
        get, most = self._ids.get, self.length - 2
        for row, word in enumerate(words):
            both = word[: most - most // 2] + word[len(word) - most // 2 :]
            kept = both if len(word) > most else word
            out[row, : len(kept) + 2] = [BEGIN, *(get(c, UNK) for c in kept), END]
        return out


def _words(train_data: Iterable[Mapping[str, Any]], column: str, ingredient: str) -> Counter[str]:
    """How often each word occurs in a column."""
    return Counter(
        read_training(
            train_data,
            [column],
            lambda row, cell: words_in(cell, column, row),
            purpose=f"to take {ingredient} from",
            setting=f"{ingredient}.column",
        )
    )


@registries.characters.register("fitted")
class FittedCharacters(Component):
    """The characters that occur in a column of ``train_data``, in the order of their first row."""

    class Config(BaseConfig):
        column: str = "words"
        """The column of the rows."""
        min_count: int = 2
        """How often a character must occur; a rarer one is the unknown character."""
        length: int = 16
        """Places of a word, two of them for the marks before and after it; a longer word keeps its
        first and its last characters."""

        def __post_init__(self) -> None:
            require(self, "characters", sizes=["min_count"])
            Characters((), length=self.length)

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> Characters:
            counts: Counter[str] = Counter()
            for word, times in _words(train_data, self.column, "characters").items():
                for character in word:
                    counts[character] += times
            known = [c for c, count in counts.items() if count >= self.min_count]
            return Characters(known, length=self.length, column=self.column)


MOST_AFFIXES = 16
"""Places of a word: more beginnings and endings than any language has use for."""
LONGEST = 12
"""Characters of a shape that are looked at."""

DIGIT = re.compile(r"\d")
REPEATED = re.compile(r"(.)\1{2,}", re.DOTALL)


def word_shape(word: str) -> str:
    """What a word looks like: capital and small letters and digits as one each, no run over two."""
    kinds = "".join(
        "X" if c.isupper() else "x" if c.islower() else "d" if c.isdigit() else c for c in word
    )
    return REPEATED.sub(r"\1\1", kinds)[:LONGEST]


class Affixes(Saved):
    """The known beginnings, endings and shapes of words.

    A word has a place for each length of a beginning, then for each of an ending, then one for its
    shape. Beginnings and endings are of small letters, with 0 for every digit; a shorter word is
    its own.

    Args:
        known: Those of each place, each once. Ids begin at 1, after padding, with one for what is
            unknown at each place; then they are in this order.
        prefixes: Lengths of beginnings, in characters.
        suffixes: Lengths of endings.
    """

    pad_idx = 0
    """The id of padding."""

    def __init__(
        self,
        known: Sequence[Iterable[str]],
        *,
        prefixes: Sequence[int],
        suffixes: Sequence[int],
        column: str = "words",
    ) -> None:
        self.known = tuple(tuple(names) for names in known)
        self.prefixes, self.suffixes, self.column = tuple(prefixes), tuple(suffixes), column
        if min((*self.prefixes, *self.suffixes), default=1) < 1:
            raise UserError(
                "Lengths of affixes must be at least 1, but are "
                f"{[*self.prefixes]} and {[*self.suffixes]}."
            )
        self.length = len(self.prefixes) + len(self.suffixes) + 1
        """Places of a word."""
        if self.length > MOST_AFFIXES:
            raise UserError(
                f"A word may have {MOST_AFFIXES - 1} beginnings and endings, but has "
                f"{self.length - 1}."
            )
        if len(self.known) != self.length:
            raise UserError(
                f"Affixes of {self.length} places are wanted, but those of {len(self.known)} are "
                "known."
            )
        self._ids: list[dict[str, int]] = []
        self.size = 1 + self.length
        """Number of ids."""
        for names in self.known:
            ids = {name: self.size + i for i, name in enumerate(names)}
            refuse_twice(names, "Affixes of a place")
            self._ids.append(ids)
            self.size += len(ids)

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The ids of words. *Shape:* ``[len(words), length]``."""
        out = np.empty((len(words), self.length), dtype=np.int32)
        for row, word in enumerate(words):
            parts = affixes_of(word, self.prefixes, self.suffixes)
            both = zip(self._ids, parts, strict=True)
            out[row] = [ids.get(part, 1 + place) for place, (ids, part) in enumerate(both)]
        return out


def affixes_of(word: str, prefixes: Sequence[int], suffixes: Sequence[int]) -> list[str]:
    """What stands at each place of a word.

    Example:
        >>> affixes_of("Pages", [1], [1, 2])
        ['p', 's', 'es', 'Xxx']
    """
    small = DIGIT.sub("0", word.lower())
    beginnings = [small[:length] for length in prefixes]
    return [*beginnings, *(small[-length:] for length in suffixes), word_shape(word)]


@registries.affixes.register("fitted")
class FittedAffixes(Component):
    """The beginnings, endings and shapes of the words in a column of ``train_data``."""

    class Config(BaseConfig):
        column: str = "words"
        """The column of the rows."""
        prefixes: tuple[int, ...] = (1, 2, 3)
        """Lengths of the beginnings, in characters."""
        suffixes: tuple[int, ...] = (1, 2, 3, 4)
        """Lengths of the endings."""
        min_count: int = 2
        """How often an affix must occur to be known."""

        def __post_init__(self) -> None:
            require(self, "affixes", sizes=["min_count"])
            none: list[list[str]] = [[] for _ in (*self.prefixes, *self.suffixes, "shape")]
            Affixes(none, prefixes=self.prefixes, suffixes=self.suffixes)

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> Affixes:
            words = _words(train_data, self.column, "affixes")
            counts: list[Counter[str]] = [
                Counter() for _ in (*self.prefixes, *self.suffixes, "shape")
            ]
            for word, times in words.items():
                parts = affixes_of(word, self.prefixes, self.suffixes)
                for count, part in zip(counts, parts, strict=True):
                    count[part] += times
            known = [[p for p, n in count.items() if n >= self.min_count] for count in counts]
            return Affixes(
                known, prefixes=self.prefixes, suffixes=self.suffixes, column=self.column
            )


MOST_PIECES = 64
"""Places of a word: every word has as many."""


class WordPieces(Saved):
    """A tokenizer of pieces, and how many places a word has for them.

    Each word is cut by itself; of a longer one the first pieces are kept.
    """

    def __init__(self, tokenizer: Tokenizer, *, length: int = 8, column: str = "words") -> None:
        if not 1 <= length <= MOST_PIECES:
            raise UserError(f"pieces.length must be from 1 to {MOST_PIECES}, but is {length}.")
        self.tokenizer, self.length, self.column = tokenizer, length, column
        self._encoder = tokenizer.create_encoder(mode="target")
        self._before = len(tokenizer.target_prefix())

    @property
    def vocab_info(self) -> VocabInfo:
        return self.tokenizer.vocab_info

    @property
    def pad_idx(self) -> int:
        return self.vocab_info.pad_idx

    def table(self, words: Sequence[str]) -> NDArray[np.int32]:
        """The ids of words, the unknown one where there is none. *Shape:* ``[N, length]``."""
        rows = self._encoder.batch([f"{self.tokenizer.before_word}{word}" for word in words])
        out = np.full((len(words), self.length), self.pad_idx, dtype=np.int32)
        for number, row in enumerate(rows):
            pieces = row[self._before : -1][: self.length]
            out[number, : max(1, len(pieces))] = pieces if len(pieces) else self.vocab_info.unk_idx
        return out


@registries.pieces.register("pretrained")
class PretrainedPieces(Component):
    """The pieces of the tokenizer of ``model.encoder.path``, word by word."""

    class Config(BaseConfig):
        path: Path | None = None
        """The file tokenizer.json; null is that of ``model.encoder.path``."""
        column: str = "words"
        """The column of the rows."""
        length: int = 8
        """Places of a word for its pieces; of a longer word the first are kept."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, model: Any = None
        ) -> WordPieces:
            # Most recipes have no pieces, and do without the libraries that it imports.
            from textmill.text.tokenizers.pretrained import PretrainedTokenizer, tokenizer_of

            path = tokenizer_of(model) if self.path is None else self.path
            tokenizer = PretrainedTokenizer(PretrainedTokenizer.Config(path=path))
            return WordPieces(tokenizer, length=self.length, column=self.column)


@registries.pieces.register("fitted")
class FittedPieces(Component):
    """The words and punctuation of sentences, as they occur in a column of ``train_data``."""

    class Config(BaseConfig):
        column: str = "words"
        """The column of the rows."""
        length: int = MOST_PIECES
        """Places of a sentence for its words; of a longer one the first are kept."""
        vocab_size: int = 10_000
        """Most words that are known."""
        min_count: int = 2
        """How often a word must occur; a rarer one is the unknown word."""
        lowercase: bool = True
        """Whether words are lower-cased first."""

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> WordPieces:
            from textmill.text.tokenizers.fitted_tokenizer import FittedTokenizer

            words = FittedTokenizer.Config(
                kind="words",
                columns=(self.column,),
                vocab_size=self.vocab_size,
                min_count=self.min_count,
                lowercase=self.lowercase,
            )
            tokenizer: Tokenizer = words.build(train_data=train_data)
            return WordPieces(tokenizer, length=self.length, column=self.column)
