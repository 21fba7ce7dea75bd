"""Dictionaries: knowledge of words from outside the training data, and its columns."""

import json
from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from typing_extensions import TypedDict, override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import DataError, UserError
from textmill.text import registries
from textmill.text.cells import read_training, words_in
from textmill.text.columns.column import Column, columns
from textmill.text.columns.token_ids import IdsColumn
from textmill.text.columns.words import check_words
from textmill.text.metadata import Saved, refuse_twice
from textmill.text.ragged import Ragged, offsets_of

MOST_KINDS = 1 << 20
"""Kinds that a dictionary may have: their vectors take 64 MB. Batches hold a kind's number in a
float32, which is exact up to 16 times as many."""


class Dictionary(Saved, ABC):
    """Finds the kinds of a text's words."""

    def __init__(self, kinds: Iterable[str], *, column: str) -> None:
        self.kinds, self.column = tuple(kinds), column
        self.numbers = {name: 1 + i for i, name in enumerate(self.kinds)}
        """The number of each kind."""
        if not 0 < len(self.kinds) <= MOST_KINDS:
            raise UserError(
                f"A dictionary must have from 1 to {MOST_KINDS:,} kinds, but has {len(self.kinds)}."
            )
        refuse_twice(self.kinds, "The kinds of a dictionary")

    @property
    def size(self) -> int:
        return 1 + len(self.kinds)

    @abstractmethod
    def find(self, value: Any, row: int) -> list[tuple[int, int, float]]:
        """What is known of the words of one cell, in their order.

        A word's place, from 0; the number of its kind, from 1; how sure it is, or how much it
        counts.
        """


MOST_WORDS = 1 << 20
"""Places of words; no text of a model has as many, and a float32 still counts them exactly."""
LARGEST = 1e6
"""Of a weight, which is a share or a count: a sum of a million such is finite in a float32."""
EXAMPLE = '[{"tokenIdx": 1, "features": {"drink": 0.8}}]'


class GivenKinds(Dictionary):
    """Kinds of words with their weights, as a column has them.

    A kind that is not known, since no row of the training data had it, says nothing.
    """

    @override
    def find(self, value: Any, row: int) -> list[tuple[int, int, float]]:
        known = self.numbers
        return [
            (place, known[kind], weight)
            for place, kind, weight in kinds_in(value, self.column, row)
            if kind in known
        ]


@registries.dictionaries.register("given")
class FittedKinds(Component):
    """The kinds of words that a column of ``train_data`` has as JSON."""

    class Config(BaseConfig):
        column: str = "dictionary"
        """The column: ``[{"tokenIdx": 1, "features": {"drink": 0.8, "song": 0.2}}]``, a word's
        place from 0 and its kinds with their weights; empty if nothing is known."""
        min_count: int = 1
        """How often a kind must occur to be known."""

        def __post_init__(self) -> None:
            require(self, "dictionary", sizes=["min_count"])

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> GivenKinds:
            found = read_training(
                train_data,
                [self.column],
                lambda row, cell: [kind for _, kind, _ in kinds_in(cell, self.column, row)],
                purpose="to take kinds of words from",
                setting="dictionary.column",
            )
            counts = Counter(found)
            kept = [kind for kind, count in counts.items() if count >= self.min_count]
            if not kept:
                raise DataError(
                    f"No row of train_data has a kind of a word in its column '{self.column}' that "
                    f"occurs {self.min_count} times."
                )
            return GivenKinds(kept, column=self.column)


def kinds_in(value: Any, column: str, row: int) -> list[tuple[int, str, float]]:
    """Places, kinds and weights in one cell, by rising place.

    The list may stand in ``{"tokenFeatList": [...]}``, as some files of PyText have it.
    """
    items = value
    try:
        if isinstance(value, str):
            items = json.loads(value) if value.strip() else []
        if isinstance(items, Mapping) and set(items) == {"tokenFeatList"}:
            items = items["tokenFeatList"]
        items = _items().validate_python(items)
    except (ValueError, RecursionError) as error:
        listed: list[Any] = getattr(error, "errors", list)()
        what, found = "", value
        for first in listed[:1]:
            place, found = ".".join(map(str, first["loc"])), first["input"]
            what = f" {first['msg']}{f', at {place!r:.80}' if place else ''}."
        raise _wanted(f"a list as {EXAMPLE}", found, column, row, what) from None
    places = Counter(item["tokenIdx"] for item in items)
    for place in (place for place, count in places.items() if count > 1):
        raise _wanted("each word once", f"tokenIdx {place} again", column, row)
    for kind in (kind for item in items for kind in item["features"] if not kind.strip()):
        raise _wanted("the name of a kind", kind, column, row)
    return [
        (item["tokenIdx"], kind, float(weight))
        for item in sorted(items, key=lambda item: int(item["tokenIdx"]))
        for kind, weight in item["features"].items()
    ]


def _wanted(wanted: str, found: Any, column: str, row: int, more: str = "") -> DataError:
    return DataError(f"Row {row}, column '{column}': wanted {wanted}, found {found!r:.80}.{more}")


@cache
def _items() -> Any:
    from pydantic import ConfigDict, Field, TypeAdapter, with_config  # it takes .1 s

    @with_config(ConfigDict(extra="forbid", strict=True))
    class Item(TypedDict):
        tokenIdx: Annotated[int, Field(ge=0, lt=MOST_WORDS)]
        features: dict[str, Annotated[float, Field(ge=-LARGEST, le=LARGEST)]]

    return TypeAdapter(list[Item])


MOST_PHRASE_WORDS = 100
"""Words of a phrase: each word of a text is looked up with as many that follow it."""


class Phrases(Dictionary):
    """Phrases of words, each of one kind or several.

    The longest phrase wins, from the first word on: no word is in two. Every word of a phrase has
    its kinds, with weight 1.

    Args:
        pairs: A kind and a phrase, in any order; white space divides the phrase's words.
    """

    def __init__(
        self, pairs: Iterable[tuple[str, str]], *, column: str = "text", lowercase: bool = True
    ) -> None:
        self.lowercase = lowercase
        known: dict[str, dict[str, None]] = {}
        self._longest: dict[str, int] = {}
        for kind, phrase in pairs:
            words = self._small(phrase).split()
            if not words or not kind.strip() or {"\t", "\n"} & {*kind}:
                raise UserError(
                    "A phrase must have a kind, without tab or line end, and a word at least, but "
                    f"one is {phrase!r:.80} of the kind {kind!r:.80}."
                )
            if len(words) > MOST_PHRASE_WORDS:
                raise UserError(
                    f"A phrase must have at most {MOST_PHRASE_WORDS} words, but one has "
                    f"{len(words)}: {phrase!r:.80}."
                )
            known.setdefault(" ".join(words), {})[kind] = None
            longest = self._longest.get(words[0], 0)
            self._longest[words[0]] = max(longest, len(words))
        self.known = {phrase: tuple(kinds) for phrase, kinds in known.items()}
        """The kinds of each phrase; one space is between two of its words."""
        super().__init__(
            dict.fromkeys(k for kinds in self.known.values() for k in kinds), column=column
        )

    @property
    def pairs(self) -> list[tuple[str, str]]:
        return [(kind, phrase) for phrase, kinds in self.known.items() for kind in kinds]

    @override
    def find(self, value: Any, row: int) -> list[tuple[int, int, float]]:
        words = [self._small(word) for word in words_in(value, self.column, row)]
        found, place = list[tuple[int, int, float]](), 0
        while place < len(words):
            after, kinds = self._longest_at(words, place)
            found += [(at, self.numbers[k], 1.0) for at in range(place, after) for k in kinds]
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


@registries.dictionaries.register("phrases")
class PhrasesOfFile(Component):
    """The phrases of a file, found in a text by themselves; they are saved with the run."""

    class Config(BaseConfig):
        path: Path
        """A text file with a kind, a tab and a phrase in each line."""
        column: str = "text"
        """The column of the text in which the phrases are looked for."""
        lowercase: bool = True
        """Whether capital and small letters are the same."""

        @override
        def build(self) -> Phrases:  # type: ignore[override]  # it needs no other ingredient
            pairs = read_phrases(self.path)
            return Phrases(pairs, column=self.column, lowercase=self.lowercase)


def read_phrases(path: Path) -> list[tuple[str, str]]:
    r"""Kinds and phrases of a file; empty lines are passed over."""
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
            raise DataError(f"{path}:{number}: the line is not UTF-8.") from None
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


class DictionaryColumn(Column):
    """What a dictionary finds in each row: the place of a word, its kind's number and its weight.

    A row has three numbers for each finding and none for a word that nothing is known of: most
    words of a text are in no dictionary.

    ``text`` is the role of the column that has the words.
    """

    dtype = np.float32  # exact for places and numbers up to 2**24
    sorted = False
    width = 3

    def __init__(self, dictionary: Dictionary, *, text: str = "text") -> None:
        super().__init__(dictionary.column, dictionary=dictionary)
        self.dictionary, self.text = dictionary, text

    @override
    def encode(self, values: Sequence[Any]) -> Ragged:
        rows = [self.dictionary.find(value, row) for row, value in enumerate(values)]
        table = np.array([finding for row in rows for finding in row], dtype=np.float32)
        counts = np.fromiter(map(len, rows), dtype=np.int64, count=len(rows))
        return Ragged(table.reshape(-1), offsets_of(counts * self.width))

    @override
    def check_beside(self, role: str, columns: Mapping[str, Column]) -> None:
        words = columns.get(self.text)
        if not isinstance(words, IdsColumn):
            raise UserError(
                f"The {role} belongs to the words of '{self.text}', which is not a text column."
            )
        check_words(words.name, words.tokenizer, marked=True)

    @override
    def check(self, encoded: Mapping[str, Ragged], kinds: Mapping[str, Column]) -> None:
        own = next(role for role, column in kinds.items() if column is self)
        words = self.words(encoded, kinds)
        rows, places = self._places(encoded[own])
        outside = np.flatnonzero(places >= words[rows])
        if len(outside):
            row, place = int(rows[outside[0]]), int(places[outside[0]])
            raise DataError(
                f"Row {row}, column '{self.name}': has kinds of the word at {place} (from 0), but "
                f"the text in '{kinds[self.text].name}' has {words[row]} words."
            )

    def words(
        self, encoded: Mapping[str, Ragged], kinds: Mapping[str, Column]
    ) -> NDArray[np.int64]:
        """How many words each row has. *Shape:* ``[n]``."""
        text: Any = kinds[self.text]
        marks: int = text.tokenizer.config.marks
        return encoded[self.text].lengths - marks

    def known(self, encoded: Ragged) -> int:
        rows, places = self._places(encoded)
        return len({*zip(rows.tolist(), places.tolist(), strict=True)})

    def _places(self, encoded: Ragged) -> tuple[NDArray[np.int64], NDArray[np.float32]]:
        rows = np.repeat(np.arange(len(encoded)), encoded.lengths // self.width)
        return rows, encoded.values[:: self.width]

    @override
    def cut(self, encoded: Ragged, limit: int) -> Ragged:
        table = encoded.values.reshape(-1, self.width)
        kept = table[:, 0] < limit
        before = np.concatenate([[0], np.cumsum(kept)])
        return Ragged(table[kept].reshape(-1), before[encoded.offsets // self.width] * self.width)


@columns.register("phrases")
class PhrasesColumn(DictionaryColumn):
    """The phrases of a dictionary that are in a text."""

    kind = "phrases"
    shares = True
    dictionary: Phrases

    @override
    def check_beside(self, role: str, columns: Mapping[str, Column]) -> None:
        super().check_beside(role, columns)
        if self.name != (text := columns[self.text].name):
            raise UserError(
                f"The phrases must be those of the text in '{text}', but are looked for in "
                f"'{self.name}': set dictionary.column={text}."
            )


@columns.register("given_kinds")
class GivenKindsColumn(DictionaryColumn):
    """The kinds of words that a column has as JSON."""

    kind = "given_kinds"
    dictionary: GivenKinds
