"""The corpus: distinct pairs in three parts that share no sentence; every word is seen in train."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from types import MappingProxyType

from weft.recipes.corpus.dictionary import DICTIONARY
from weft.recipes.corpus.draws import Draws
from weft.recipes.corpus.sentences import draw_pair
from weft.runtime.files import write_atomic

__all__ = ["Corpus", "five_new_sentences", "generate", "words_of", "write_corpus"]

Pair = tuple[str, str]

_TRAIN, _HELD_OUT = 26_000, 500
_EXTRA = 100  # spare held-out pairs, for the five new sentences
_SEEN_AT_LEAST = 5  # times a word of a held-out sentence occurs in what is left for train


@dataclass(frozen=True)
class Corpus:
    """English-French pairs in three parts, and the dictionary word by word."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    dictionary: Mapping[str, str]


def words_of(sentence: str) -> list[str]:
    """The words of a sentence in lower case, without punctuation; an apostrophe splits.

    >>> words_of("Est-ce qu'elle mange, Anne ?")
    ['est-ce', "qu'", 'elle', 'mange', 'anne']
    """
    text = sentence.lower().replace("'", "' ")
    return [word.strip(",.?!") for word in text.split() if word.strip(",.?!")]


def generate(seed: int = 0) -> Corpus:
    """Generates the whole corpus: 26,000 pairs to train on, 500 to validate and 500 to test.

    Every English sentence and every French one occurs once in all three parts together, so no
    part shares a sentence with another. Each word of a held-out sentence occurs in train, in
    both languages. The same `seed` gives the same corpus on every machine.

    >>> corpus = generate()
    >>> len(corpus.train), len(corpus.valid), len(corpus.test)
    (26000, 500, 500)
    """
    train, valid, test, _ = _parts(seed)
    return Corpus(list(train), list(valid), list(test), MappingProxyType(DICTIONARY))


def five_new_sentences(seed: int = 0) -> list[Pair]:
    """Five English sentences of no part, their words all seen, with their translations.

    >>> len(five_new_sentences())
    5
    """
    return list(_parts(seed)[3])


@lru_cache(maxsize=2)
def _parts(seed: int) -> tuple[tuple[Pair, ...], ...]:
    draws = Draws(seed)
    pairs = _distinct(draws, _TRAIN + 2 * _HELD_OUT + _EXTRA)
    seen = Counter(word for pair in pairs for word in _vocabulary(pair))
    train: list[Pair] = []
    held_out: list[Pair] = []
    for pair in pairs:
        words = _vocabulary(pair)
        wanted = 2 * _HELD_OUT + _EXTRA
        if len(held_out) < wanted and all(seen[word] > _SEEN_AT_LEAST for word in words):
            held_out.append(pair)
            seen.subtract(words)
        else:
            train.append(pair)
    valid, test = held_out[:_HELD_OUT], held_out[_HELD_OUT : 2 * _HELD_OUT]
    return tuple(train), tuple(valid), tuple(test), _five(held_out[2 * _HELD_OUT :])


def _vocabulary(pair: Pair) -> list[str]:
    """Each word of both languages once, in order; the languages apart."""
    words = [f"en {w}" for w in words_of(pair[0])] + [f"fr {w}" for w in words_of(pair[1])]
    return list(dict.fromkeys(words))


def _distinct(draws: Draws, count: int) -> list[Pair]:
    """The first `count` pairs drawn, leaving out what repeats either side."""
    english: set[str] = set()
    french: set[str] = set()
    pairs: list[Pair] = []
    while len(pairs) < count:
        pair = draw_pair(draws)
        if pair[0] not in english and pair[1] not in french:
            pairs.append(pair)
            english.add(pair[0])
            french.add(pair[1])
    return pairs


def _five(spare: list[Pair]) -> tuple[Pair, ...]:
    """Five pairs of 7 to 11 English words that show different things, one a question."""
    middle = [p for p in spare if 7 <= len(p[0].split()) <= 11]
    questions = [p for p in middle if p[0].endswith("?")]
    negations = [p for p in middle if " not " in p[0] or " never " in p[0]]
    past = [p for p in middle if "est " in p[1] and p[0].endswith(".")]
    chosen = dict.fromkeys([*questions[:1], *negations[:1], *past[:2], *middle])
    return tuple(chosen)[:5]


def write_corpus(folder: Path, seed: int = 0) -> dict[str, Path]:
    """Writes train.tsv, valid.tsv and test.tsv (English, tab, French) where they are not there yet.

    Args:
        folder: Made if absent.
        seed: Of the corpus.

    Returns:
        The three paths by part: "train", "valid", "test".

    Raises:
        StorageError: When the disk is full or the folder cannot be written.
    """
    corpus = generate(seed)
    parts = {"train": corpus.train, "valid": corpus.valid, "test": corpus.test}
    folder.mkdir(parents=True, exist_ok=True)
    paths = {}
    for name, pairs in parts.items():
        path = folder / f"{name}.tsv"
        data = "".join(f"{en}\t{fr}\n" for en, fr in pairs).encode()
        if not path.is_file() or path.read_bytes() != data:
            write_atomic(path, data)
        paths[name] = path
    return paths
