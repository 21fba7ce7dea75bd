"""Tokens that are the n-grams of a text, each once: of words and their shapes, and of characters.

Their order in the text is lost, which is what a linear model reads. Ids are pad 0, unk 1, then the
n-grams of words and shapes, then those of characters, each from the frequent to the rare; a text's
are rising.
"""

import logging
import unicodedata
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain, count, groupby, islice
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray
from typing_extensions import override

from textmill.config.component import Component
from textmill.config.component import Config as BaseConfig
from textmill.config.validators import require
from textmill.errors import DataError, UserError
from textmill.runtime.files import write_file
from textmill.text import registries
from textmill.text.cells import placed_errors, text_cell
from textmill.text.metadata import SavedTextError, read_bytes, read_settings
from textmill.text.ragged import Ragged, offsets_of
from textmill.text.tokenizers.tokenizer import (
    Decoder,
    Encoder,
    Mode,
    Tokenizer,
    VocabInfo,
    not_text,
    refuse_huge,
)
from textmill.text.tokenizers.word_tokenizer import LARGEST, NONE, PAD, UNK, WORD

FIRST = 2
"""The id of the first n-gram."""
NGRAMS = "ngrams.txt"
SAVED = ("rows", "words", "longest", "shapes", "least_characters", "most_characters")
_READ_FOR = {"purpose": "to take n-grams from", "setting": "tokenizer.columns or ngrams.columns"}
ROWS = 10_000
"""Rows whose n-grams are counted together."""
BLOCK, ID_BITS = 1_000, 32
"""Rows whose n-grams are in memory with all their repetitions, and bits of an id."""
LOG = logging.getLogger("textmill")

MOST = 4_000_000
"""N-grams that are counted; where there are more, those seen once so far are forgotten: 1 GB."""

KEPT, LONGEST_KEPT = 1 << 14, 128
"""Words whose n-grams an encoder remembers, and characters of one: some 6 MB of ordinary text."""
SMALL = "L"
"""The shape of a word in small letters, or in a script that has no others."""

Ids = NDArray[np.int64]
Number = Callable[[str], int]
T = TypeVar("T")


class Orders(NamedTuple):
    """The lengths of the n-grams that are known."""

    words: int
    """Most words of one; 0 for none."""
    shapes: int
    """Most shapes of words; 0 for none."""
    characters: tuple[int, int]
    """Fewest and most characters of one inside a word; (1, 0) for none."""


ORDERS = Orders(words=2, shapes=2, characters=(2, 5))


@registries.tokenizers.register("ngrams")
class NgramTokenizer(Tokenizer):
    """The known n-grams of texts.

    A word is letters and digits, or one mark of punctuation. It is read in small letters; how it
    was written is in its shape, as ``UL`` of "Paris" and ``UN`` of "B52": one ``U`` for capitals
    that follow each other, ``L`` for other letters, ``N`` for digits. Shapes have n-grams as words
    have. Those that are of small letters alone are left out: every text has them.

    The n-grams of two words and more have one with the text's beginning as its first word, an empty
    one. Those of characters have a space for the beginning and the end of their word.

    Args:
        words: Known n-grams of words, and of shapes, with the number of rows that have each.
        characters: Known n-grams of characters, likewise.
        rows: Number of all rows.
        orders: The lengths of the n-grams.

    Example:
        >>> tokenizer = NgramTokenizer({"up": 1, " wake": 2}, {"wa": 2}, rows=2)
        >>> tokenizer.create_encoder()("Wake up, wake up!").tolist(), tokenizer.words
        ([2, 3, 4], 2)
    """

    kind: ClassVar[str] = "ngrams"
    ordered: ClassVar[bool] = False

    def __init__(
        self,
        words: Mapping[str, int],
        characters: Mapping[str, int],
        *,
        rows: int,
        orders: Orders = ORDERS,
    ) -> None:
        self._counts = (dict(words), dict(characters))
        self.rows, self.orders = rows, orders
        self.words = len(words)
        """How many n-grams are of words and shapes; those of characters follow them."""
        longest, shapes, (least, most) = orders
        if min(longest, shapes) < 0 or not 0 < least <= most + 1:
            raise UserError(
                f"N-grams cannot have at most {longest} words, {shapes} shapes, and {least} to "
                f"{most} characters."
            )
        known = [*words.values(), *characters.values()]
        if known and not (min(known) > 0 and max(known) <= rows):
            raise UserError(f"N-grams must be those of 1 to {rows} rows.")
        seen = np.array(known, dtype=np.float64)
        self.weights = np.zeros(FIRST + len(known), dtype=np.float32)
        """How much each id counts: the root of its inverse document frequency (Spärck Jones 1972),
        1 + log((1 + rows) / (1 + rows that have it)); 0 for none. *Shape:* ``[size]``."""
        self.weights[FIRST:] = np.sqrt(1 + np.log((1 + rows) / (1 + seen)))

    @property
    @override
    def vocab_info(self) -> VocabInfo:
        return VocabInfo(len(self.weights), UNK, bos_idx=NONE, eos_idx=NONE, pad_idx=PAD)

    @override
    def create_encoder(self, *, mode: Mode = "source", lang: str | None = None) -> Encoder:
        return _NgramEncoder(self)

    @override
    def create_decoder(self) -> Decoder:
        return _NgramDecoder([ngram for part in self._counts for ngram in part])

    @override
    def target_prefix(self, lang: str | None = None) -> list[int]:
        return []  # n-grams are not written

    def named(self, ids: Iterable[int]) -> list[tuple[str, str]]:
        """N-grams by their ids, each with its kind: ``words``, ``shapes`` or ``characters``."""
        known = [ngram for part in self._counts for ngram in part]
        found = [(known[i - FIRST], i - FIRST < self.words) for i in ids]
        # Words are in small letters, and shapes in capitals.
        return [
            (ngram, ("words" if ngram == ngram.lower() else "shapes") if is_word else "characters")
            for ngram, is_word in found
        ]

    def numbers(self) -> tuple[dict[str, int], dict[str, int]]:
        """The ids of the n-grams of words and shapes, and of those of characters."""
        ids = count(FIRST)
        words, characters = (dict(zip(part, ids, strict=False)) for part in self._counts)
        return words, characters

    @override
    def save_files(self, folder: Path) -> dict[str, Any]:
        lines = (f"{n} {ngram}\n" for part in self._counts for ngram, n in part.items())
        write_file(folder / NGRAMS, "".join(lines))
        longest, shapes, lengths = self.orders
        found = (self.rows, self.words, longest, shapes, *lengths)
        return dict(zip(SAVED, found, strict=True))

    @classmethod
    @override
    def from_files(cls, folder: Path, settings: dict[str, Any]) -> "NgramTokenizer":
        numbers = read_settings(settings, dict.fromkeys(SAVED, int))
        rows, size, longest, shapes, least, most = numbers.values()
        path = folder / NGRAMS
        try:
            lines = read_bytes(path, largest=LARGEST).decode().split("\n")[:-1]
            found = [(ngram, int(n)) for n, _, ngram in (line.partition(" ") for line in lines)]
            words, characters = dict(found[:size]), dict(found[size:])
            if not len(words) == size or len(words) + len(characters) < len(found):
                raise ValueError(f"wanted {size} n-grams of words, each n-gram once.")
            return cls(words, characters, rows=rows, orders=Orders(longest, shapes, (least, most)))
        except (OverflowError, ValueError, UserError) as error:
            raise SavedTextError(f"{path}: {error} Save the text processor again.") from None


class _NgramEncoder(Encoder):
    def __init__(self, tokenizer: NgramTokenizer) -> None:
        self._words, self._characters = tokenizer.numbers()
        self._orders = tokenizer.orders
        self._known: dict[str, tuple[bytes, str, str]] = {}

    @override
    def batch(self, texts: Sequence[str]) -> Ragged:
        if error := not_text(texts):
            raise error
        rows = [self._ids(text) for text in texts]
        lengths = np.fromiter(map(len, rows), np.int64, len(rows))
        return Ragged(np.concatenate([np.zeros(0, np.int32), *rows]), offsets_of(lengths))

    @override
    def __call__(self, text: str) -> NDArray[np.int32]:
        if error := not_text([text]):
            raise error
        return self._ids(text)

    def _ids(self, text: str) -> NDArray[np.int32]:
        """Those that :func:`ngrams_of` finds; of a vocabulary that is known this is faster."""
        known, orders = self._known, self._orders
        found = [known.get(w) or self._look_up(w) for w in WORD["punctuation"].findall(text)]
        parts, words, shapes = zip(BEGINNING, *found, strict=True)
        windows = [_windows(words, size) for size in range(2, orders.words + 1)]
        windows += [{*_windows(shapes, size)} for size in range(2, orders.shapes + 1)]
        more = _bytes(map(self._words.get, map(" ".join, chain.from_iterable(windows))))
        ids = np.frombuffer(bytearray().join((*parts, more)), np.int32)
        ids.sort()
        different: NDArray[np.int32] = ids[1:][ids[1:] != ids[:-1]]  # without the beginning's
        return different

    def _look_up(self, written: str) -> tuple[bytes, str, str]:
        """The ids of what one word has, the word and its shape; kept, since words come again."""
        word, shape = written.lower(), shape_of(written)
        numbers = _of_word(word, shape, (self._words.get, self._characters.get), self._orders)
        found = _bytes(numbers), word, shape
        if len(written) <= LONGEST_KEPT:
            if len(self._known) >= KEPT:
                self._known = {}  # another thread may be reading those
            self._known[written] = found
        return found


def _bytes(ids: Iterable[int | None]) -> bytes:
    """Ids without None, as one piece of memory: arrays have several each, and join slowly."""
    return array("i", filter(None, ids)).tobytes()


BEGINNING = array("i", [-1]).tobytes(), "", ""
"""What stands before the first word: an id below all others, and an empty word and shape."""


class _NgramDecoder(Decoder):
    def __init__(self, known: Sequence[str]) -> None:
        self._known = ["", "", *known]

    @override
    def batch(self, rows: Sequence[Sequence[int]]) -> list[str]:
        found = ([self._known[i] for i in np.asarray(row).tolist() if i >= FIRST] for row in rows)
        return [" ".join(row) for row in found]


def ngrams_of(
    texts: Sequence[str], numbers: tuple[Number, Number], orders: Orders
) -> Iterator[Ragged]:
    """The n-grams of texts, each once a text, rising; those of ``BLOCK`` texts at a time.

    Their ``numbers`` are the id of an n-gram of words, and of one of characters; below 0: left out.
    """
    # What one word has is found once for each different word: a corpus has ten times as many words.
    places: dict[str, int] = {}
    split = map(WORD["punctuation"].findall, texts)
    at = [[places.setdefault(word, len(places)) for word in row] for row in split]
    words, shapes = [word.lower() for word in places], [shape_of(word) for word in places]
    single = Ragged.from_lists(
        [_of_word(*each, numbers, orders) for each in zip(words, shapes, strict=True)]
    )
    several = []
    for parts, longest in ((words, orders.words), (shapes, orders.shapes)):
        for size in range(2, longest + 1):
            joined = (map(" ".join, _windows(["", *(parts[i] for i in row)], size)) for row in at)
            # Of shapes, those of small letters alone are left out: every text has them.
            more = ([numbers[0](each) for each in row if each.strip(f" {SMALL}")] for row in joined)
            several.append(Ragged.from_lists([*more]))
    for start in range(0, len(texts), BLOCK):
        here = Ragged.from_lists(at[start : start + BLOCK])
        rows, lists = np.arange(start, start + len(here)), single.take(here.values)
        row_of = np.repeat(rows, here.lengths)
        found = [(np.repeat(row_of, lists.lengths), lists.values)]
        for each in several:
            of_rows = each.take(rows)
            found.append((np.repeat(rows, of_rows.lengths), of_rows.values))
        all_rows, ids = (np.concatenate(part) for part in zip(*found, strict=True))
        # One number for both, sorted: np.unique takes three times as long.
        both = ((all_rows - start << ID_BITS) + ids)[ids >= 0]
        both.sort()
        both = both[np.diff(both, prepend=-1) > 0]
        lengths = np.bincount(both >> ID_BITS, minlength=len(rows))
        yield Ragged((both & (1 << ID_BITS) - 1).astype(np.int32), offsets_of(lengths))


def shape_of(word: str) -> str:
    """How a word is written."""
    if word.isalpha() and word == word.lower():  # most words
        return SMALL
    return "".join(kind for kind, _ in groupby(map(_shape_of, word)))


def _shape_of(character: str) -> str:
    if character.isalpha() or unicodedata.category(character)[0] == "M":  # a mark of a letter
        return SMALL if character == character.lower() else "U"
    return "N" if character.isalnum() else character


def _of_word(
    word: str, shape: str, numbers: tuple[Callable[[str], T], Callable[[str], T]], orders: Orders
) -> list[T]:
    """The numbers of what one word has."""
    longest, shapes, (least, most) = orders
    words, characters = numbers
    marked = f" {word} "
    parts = {marked[i : i + n] for n in range(least, most + 1) for i in range(len(marked) - n + 1)}
    whole = [word] if longest else []
    if shapes and shape != SMALL:
        whole.append(shape)
    return [*map(words, whole), *map(characters, sorted(parts))]


def _windows(words: Sequence[str], size: int) -> Iterable[tuple[str, ...]]:
    """Each ``size`` words, or shapes, that follow each other."""
    return zip(*[words[i:] for i in range(size)], strict=False)


@registries.tokenizers.register("fitted_ngrams")
class FittedNgrams(Component):
    """The n-grams of words, shapes and characters that occur in columns of ``train_data``."""

    class Config(BaseConfig):
        columns: tuple[str, ...] = ("text",)
        """The columns of the rows whose n-grams are taken."""
        words: int = 2
        """Most words of an n-gram; 0: no n-grams of words."""
        shapes: int = 2
        """Most shapes of words in an n-gram. A shape tells capitals and digits, such as ``UL`` of
        "Paris". 0: no shapes, and capital and small letters are the same."""
        characters: tuple[int, int] = (2, 5)
        """Fewest and most characters of an n-gram inside one word; ``[1,0]`` for none."""
        min_count: int = 1
        """How many rows must have an n-gram."""
        vocab_size: int = 1 << 16
        """Most ids, with those of padding and of the unknown; n-grams that more rows have are
        kept first."""

        def __post_init__(self) -> None:
            require(self, "", sizes=["min_count"], not_negative=["words", "shapes"])
            least, most = self.characters
            if not 0 < least <= most + 1 or (most < least and not self.words):
                raise UserError(
                    "characters must be the fewest characters of an n-gram, 1 or more, "
                    f"and the most, but is {[least, most]}; [1,0] is for none, where there are "
                    "n-grams of words."
                )
            refuse_huge(self.vocab_size)
            if self.vocab_size <= FIRST:
                raise UserError(
                    f"vocab_size must be {FIRST + 1} or more: {FIRST} ids stand for "
                    f"padding and the unknown; it is {self.vocab_size}."
                )

        @property
        def orders(self) -> Orders:
            return Orders(self.words, self.shapes, self.characters)

        @override
        def build(  # type: ignore[override]  # what is built of is named, for the planner
            self, *, train_data: Iterable[Mapping[str, Any]]
        ) -> NgramTokenizer:
            counting, rows = _Counting(), 0
            with placed_errors(train_data):
                numbered = enumerate(train_data)
                while some := list(islice(numbered, ROWS)):
                    for name in self.columns:
                        texts = [text_cell(values, name, row, **_READ_FOR) for row, values in some]
                        counting.add(texts, self.orders)
                    rows += len(some) * len(self.columns)
            kept = counting.most(self.vocab_size - FIRST, self.min_count)
            if not any(kept):
                raise DataError(
                    f"No n-gram of train_data is known: its {' and '.join(self.columns)} has none "
                    f"that {self.min_count} rows have. Lower min_count."
                )
            return NgramTokenizer(*kept, rows=rows, orders=self.orders)


class _Counting:
    """How many texts have each n-gram."""

    def __init__(self) -> None:
        self._number(({}, {}), np.zeros(0, np.int64))

    def _number(self, parts: tuple[Mapping[str, int], ...], counts: Ids) -> None:
        """Goes on with the n-grams of ``parts``, as many as ``counts``; their order stays."""
        self.counts, numbers = counts, count(len(counts))
        self.parts = tuple(defaultdict(numbers.__next__, part) for part in parts)

    def add(self, texts: Sequence[str], orders: Orders) -> None:
        if error := not_text(texts):
            raise error
        words, characters = (part.__getitem__ for part in self.parts)
        found = Ragged.concatenate(ngrams_of(texts, (words, characters), orders))
        size = sum(map(len, self.parts))
        self.counts = np.bincount(found.values, minlength=size) + np.pad(
            self.counts, (0, size - len(self.counts))
        )
        if size > MOST:
            LOG.info("Of %s n-grams those of a single row so far are forgotten.", f"{size:,}")
            self._keep(self.counts > 1)

    def _keep(self, which: NDArray[np.bool_]) -> None:
        new, kept = np.cumsum(which) - 1, which.tolist()
        numbers = [{n: int(new[i]) for n, i in part.items() if kept[i]} for part in self.parts]
        self._number(tuple(numbers), self.counts[which])

    def most(self, size: int, least: int) -> list[dict[str, int]]:
        """The n-grams of the most texts, from the frequent to the rare, and of how many each.

        It ends the counting.
        """
        order = np.argsort(-self.counts, kind="stable")[:size]
        which = np.zeros(len(self.counts), dtype=np.bool_)
        which[order] = self.counts[order] >= least
        self._keep(which)
        counts = self.counts.tolist()
        ordered = [sorted(part.items(), key=lambda item: -counts[item[1]]) for part in self.parts]
        lines = ["\n".join(ngram for ngram, _ in part) for part in ordered]
        numbers = [[counts[i] for _, i in part] for part in ordered]
        # As new strings, which lie together: the counted ones lie scattered among all others, whose
        # memory they would keep.
        del ordered
        self.parts = ()
        pairs = zip(lines, numbers, strict=True)
        return [dict(zip(text.splitlines(), each, strict=True)) for text, each in pairs]
