"""The corpus: distinct pairs in three parts that share no sentence; every word is seen in train."""

import random
import re
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from pathlib import Path
from types import MappingProxyType

import numpy as np

from textmill.runtime.files import write_atomic

Pair = tuple[str, str]

FILE = "corpus.tsv.bz2"
"""Beside this module: the pairs of train, valid and test, five more, and the dictionary."""
TRAIN, HELD_OUT = 26_000, 500
"""Pairs of the part to train on, and of each of the two others."""
_FIVE = 5
_TOKEN = re.compile(r"[^\W_]+(?:[-'][^\W_]+)*|[.,?!]")
_SEEN_AT_LEAST = 5  # times a word of a held-out sentence occurs in what is left for train


@dataclass(frozen=True)
class Corpus:
    """English-French pairs in three parts, and the dictionary word by word."""

    train: list[Pair]
    valid: list[Pair]
    test: list[Pair]
    dictionary: Mapping[str, str]


def words_of(sentence: str) -> list[str]:
    """The words of a sentence in lower case, without punctuation; an apostrophe splits."""
    text = sentence.lower().replace("'", "' ")
    return [word.strip(",.?!") for word in text.split() if word.strip(",.?!")]


@cache
def _rows() -> list[Pair]:
    import pyarrow as pa  # it reads bz2 where Python was built without

    packed = pa.BufferReader((files("textmill.recipes.corpus") / FILE).read_bytes())
    lines = pa.CompressedInputStream(packed, "bz2").read().decode().splitlines()
    return [(en, fr) for en, _, fr in (line.partition("\t") for line in lines)]


def load_corpus(seed: int = 0) -> Corpus:
    """The whole corpus: 26,000 pairs to train on, 500 to validate and 500 to test.

    Every English sentence and every French one occurs once in all three parts together, so no
    part shares a sentence with another. Each word of a held-out sentence occurs in train, in
    both languages.

    The seed says which sentences are held out, and the order of all; it is the same on every
    machine.
    """
    rows, size = _rows(), TRAIN + 2 * HELD_OUT
    pairs, held_out = rows[:TRAIN], rows[TRAIN:size]
    if seed:
        mixed = rows[:size]
        random.Random(seed).shuffle(mixed)  # noqa: S311  # no secret
        pairs, held_out = hold_out(mixed, 2 * HELD_OUT)
    words = MappingProxyType(dict(rows[size + _FIVE :]))
    return Corpus(pairs, held_out[:HELD_OUT], held_out[HELD_OUT:], words)


def five_new_sentences() -> list[Pair]:
    """Five English sentences of no part, their words all seen, with their translations."""
    size = TRAIN + 2 * HELD_OUT
    return _rows()[size : size + _FIVE]


def hold_out(pairs: Sequence[Pair], count: int) -> tuple[list[Pair], list[Pair]]:
    """The pairs without, and the first ``count`` all of whose words the others have as well."""
    seen = Counter(word for pair in pairs for word in _vocabulary(pair))
    rest: list[Pair] = []
    held_out: list[Pair] = []
    for pair in pairs:
        words = _vocabulary(pair)
        if len(held_out) < count and all(seen[word] > _SEEN_AT_LEAST for word in words):
            held_out.append(pair)
            seen.subtract(words)
        else:
            rest.append(pair)
    return rest, held_out


def _vocabulary(pair: Pair) -> list[str]:
    """Each word of both languages once, in order; the languages apart."""
    words = [f"en {w}" for w in words_of(pair[0])] + [f"fr {w}" for w in words_of(pair[1])]
    return list(dict.fromkeys(words))


def write_corpus(folder: Path) -> dict[str, Path]:
    """Writes train.tsv, valid.tsv and test.tsv (English, tab, French) where they are not there yet.

    Returns:
        The three paths by part: "train", "valid", "test".
    """
    corpus = load_corpus()
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


# -- two translators without learning: what a model must beat


def _tokens(text: str) -> list[str]:
    return _TOKEN.findall(text.lower())


def word_for_word(sentences: Sequence[str], dictionary: Mapping[str, str]) -> list[str]:
    """Replaces every English word by its one French word; a word the dictionary lacks stays.

    A possessive 's is dropped. The mark at the end is written as French writes it.
    """
    answers = []
    for sentence in sentences:
        words = []
        for token in _tokens(sentence):
            plain = token if token in dictionary else token.removesuffix("'s")
            words.append(dictionary.get(plain, plain))
        text = " ".join(word for word in words if word)
        text = re.sub(r" ([.,])", r"\1", text)
        answers.append(text[:1].upper() + text[1:])
    return answers


def nearest_sentence(sentences: Sequence[str], train: Sequence[tuple[str, str]]) -> list[str]:
    """Answers with the translation of the training sentence that shares most words.

    Similarity is the F-score of shared words and shared neighbouring pairs of words, counted
    with repeats; of equals the first wins. An index of words keeps 500 questions on 26,000
    sentences to about two seconds.
    """
    bags = [_bag(en) for en, _ in train]
    sizes = np.array([sum(bag.values()) for bag in bags])
    found: dict[str, list[tuple[int, int]]] = defaultdict(list)
    for row, bag in enumerate(bags):
        for item, count in bag.items():
            found[item].append((row, count))
    where = {item: np.array(rows).T for item, rows in found.items()}
    answers = []
    for sentence in sentences:
        bag = _bag(sentence)
        shared = np.zeros(len(train), dtype=np.int64)
        for item, count in bag.items():
            if item in where:
                rows, others = where[item]
                shared[rows] += np.minimum(others, count)
        best = int(np.argmax(shared / (sizes + sum(bag.values()))))
        answers.append(train[best][1])
    return answers


def _bag(sentence: str) -> Counter[str]:
    tokens = _tokens(sentence)
    pairs = (f"{a} {b}" for a, b in pairwise(tokens))
    return Counter([*tokens, *pairs])
