"""Tokens that are the words of a text as it is written, split at white space.

Ids are pad 0, unk 1, then the words. A text is neither begun nor ended by a mark, which suits what
reads texts (classifiers, taggers). For what writes them (language models) there are ``marks``: ids
2 and 3 begin and end a text, and the words follow. With ``split=punctuation`` a mark of punctuation
is a word of its own.
"""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, ClassVar, Final, Literal

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.cells import text_cell
from textmill.text.metadata import SavedTextError, read_bytes, refuse_twice
from textmill.text.ragged import Ragged
from textmill.text.tokenizers.tokenizer import (
    UNKNOWN,
    Decoder,
    Encoder,
    Mode,
    Tokenizer,
    VocabInfo,
    not_text,
    refuse_huge,
)

Split = Literal["space", "punctuation"]
"""What divides words: white space; or each mark of punctuation, a word of its own, too."""
WORD: Final[Mapping[Split, re.Pattern[str]]] = {
    "space": re.compile(r"\S+"),
    "punctuation": re.compile(r"\w+|[^\w\s]"),
}
"""What a word is."""
PAD, UNK, BOS, EOS = range(4)
NONE = -1
"""The id of a mark that a tokenizer does not have."""
LARGEST = 1 << 28
"""Bytes of a saved vocabulary: some 20 million words."""
_READ_FOR = {"purpose": "to take words from", "setting": "tokenizer.columns"}


class WordSettings(BaseConfig):
    """What a word is, and whether a text has marks."""

    lowercase: bool = True
    """Whether texts are lower-cased first."""
    marks: bool = False
    """Whether each text gets a mark at its beginning and its end, as a language model needs."""
    split: Split = "space"
    """What divides words: white space; or punctuation too, each mark a word of its own."""


@registries.tokenizers.register("words")
class WordTokenizer(Component, Tokenizer):
    """One id for each known word; words are what white space divides.

    Example:
        >>> tokenizer = WordTokenizer.Config(words=("wake", "me", "up")).build()
        >>> ids = tokenizer.create_encoder()("Wake me  now")
        >>> ids.tolist(), tokenizer.create_decoder()(ids)
        ([2, 3, 1], 'wake me \u2047')
        >>> WordTokenizer.Config(words=("up",), marks=True).build().create_encoder()("up").tolist()
        [4, 3]
    """

    kind: ClassVar[str] = "words"
    saved_file = "words", "words.txt"

    class Config(WordSettings):
        words: tuple[str, ...]
        """Each word once, in the order of their ids."""

    def __init__(self, config: "WordTokenizer.Config") -> None:
        self.config, self._first = config, _first(marks=config.marks)
        for word in config.words:
            if [word] != word.split():
                raise UserError(
                    f"A word must be text without white space, but one is {word!r:.80}."
                )
        self.numbers = {word: i for i, word in enumerate(config.words, self._first)}
        """The id of each word."""
        refuse_twice(config.words, "Words")

    @property
    @override
    def vocab_info(self) -> VocabInfo:
        marks = self.config.marks
        return VocabInfo(
            size=self._first + len(self.numbers),
            unk_idx=UNK,
            bos_idx=BOS if marks else NONE,
            eos_idx=EOS if marks else NONE,
            pad_idx=PAD,
        )

    def words(self, text: str) -> list[str]:
        """The words of a text, as the vocabulary has them."""
        return _words(text, self.config.split, lowercase=self.config.lowercase)

    def places(self, text: str) -> list[tuple[int, int]]:
        """Where each word of a text begins, and ends."""
        return [match.span() for match in WORD[self.config.split].finditer(text)]

    @override
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        before = self.target_prefix() if mode == "target" else []
        return _WordEncoder(self, before, after=[EOS] if self.config.marks else [])

    @override
    def create_decoder(self) -> Decoder:
        return _WordDecoder(self.config.words, first=self._first)

    @override
    def target_prefix(self, lang: str | None = None) -> list[int]:
        return [BOS] if self.config.marks else []

    @override
    def file_content(self) -> bytes:
        return "".join(f"{word}\n" for word in self.config.words).encode()

    @classmethod
    @override
    def read_file(cls, path: Path) -> tuple[str, ...]:
        try:
            return tuple(read_bytes(path, largest=LARGEST).decode().split("\n")[:-1])
        except UnicodeDecodeError as error:
            raise SavedTextError(f"{path}: {error} Save the text processor again.") from None


def _words(text: str, split: Split, *, lowercase: bool) -> list[str]:
    if split == "space":
        return (text.lower() if lowercase else text).split()
    found: list[str] = WORD[split].findall(text)
    return [word.lower() for word in found] if lowercase else found


def _first(*, marks: bool) -> int:
    """The id of the first word."""
    return EOS + 1 if marks else UNK + 1


class _WordEncoder(Encoder):
    def __init__(
        self, tokenizer: WordTokenizer, before: Sequence[int], after: Sequence[int]
    ) -> None:
        self._numbers, self._words = tokenizer.numbers, tokenizer.words
        self._before, self._after = before, after

    @override
    def batch(self, texts: Sequence[str]) -> Ragged:
        if error := not_text(texts):
            raise error
        get, words = self._numbers.get, self._words
        rows = Ragged.from_lists([[get(word, UNK) for word in words(text)] for text in texts])
        return rows.wrapped(self._before, self._after) if self._after else rows

    @override
    def __call__(self, text: str) -> NDArray[np.int32]:
        if error := not_text([text]):
            raise error
        get = self._numbers.get
        ids = [get(word, UNK) for word in self._words(text)]
        return np.array([*self._before, *ids, *self._after] if self._after else ids, np.int32)


class _WordDecoder(Decoder):
    def __init__(self, words: Sequence[str], *, first: int) -> None:
        self._words, self._first = ["", UNKNOWN, *[""] * (first - 2), *words], first

    @override
    def batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        known, first = self._words, self._first
        return [
            " ".join(
                known[i] if 0 <= i < len(known) else UNKNOWN
                for i in row
                if i == UNK or not 0 <= i < first
            )
            for row in (np.asarray(row).tolist() for row in rows)
        ]


@registries.tokenizers.register("fitted_words")
class FittedWords(Component):
    """The words that occur in columns of ``train_data``, in the order of their first row."""

    class Config(WordSettings):
        columns: tuple[str, ...] = ("text",)
        """The columns of the rows whose words are taken."""
        min_count: int = 1
        """How often a word must occur to be known. Above 1, rare words train the vector of the
        unknown word."""
        vocab_size: int | None = None
        """Most ids, with those of padding and the unknown word: the most frequent words; null for
        no limit."""

        def __post_init__(self) -> None:
            require(self, "tokenizer", sizes=["min_count"])
            first = _first(marks=self.marks)
            refuse_huge(self.vocab_size or 0)
            if self.vocab_size is not None and self.vocab_size <= first:
                marks = ", both marks" if self.marks else ""
                raise UserError(
                    f"tokenizer.vocab_size must be {first + 1} or more: {first} ids stand for "
                    f"padding{marks} and the unknown word; it is {self.vocab_size}."
                )

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> WordTokenizer:
            counts: Counter[str] = Counter()
            for row, values in enumerate(train_data):
                for name in self.columns:
                    text = text_cell(values, name, row, **_READ_FOR)
                    counts.update(_words(text, self.split, lowercase=self.lowercase))
            kept = [word for word, count in counts.items() if count >= self.min_count]
            first = _first(marks=self.marks)
            if self.vocab_size is not None and len(kept) > self.vocab_size - first:
                kept = sorted(kept, key=counts.__getitem__, reverse=True)[: self.vocab_size - first]
            if not kept:
                raise DataError(
                    f"No word of train_data is known: its {' and '.join(self.columns)} has none "
                    f"that occurs {self.min_count} times. Lower tokenizer.min_count."
                )
            same = {each.name: getattr(self, each.name) for each in fields(WordSettings)}
            return WordTokenizer(WordTokenizer.Config(words=tuple(kept), **same))


def unknown_words(tokenizer: WordTokenizer, text: str) -> list[str]:
    """The words of a text that have no id, as they are written there, in order."""
    words, places = tokenizer.words(text), tokenizer.places(text)
    return [
        text[start:end]
        for word, (start, end) in zip(words, places, strict=True)
        if word not in tokenizer.numbers
    ]


def with_unknown(answer: str, words: Sequence[str]) -> str:
    """An answer whose first unknown word is the first of ``words``, and so on; others stay.

    Example:
        >>> with_unknown("[IN:WAKE wake [SL:NAME \u2047 ] \u2047 ]", ["Ann"])
        '[IN:WAKE wake [SL:NAME Ann ] \u2047 ]'
    """
    left = iter(words)
    return " ".join(next(left, UNKNOWN) if word == UNKNOWN else word for word in answer.split(" "))
