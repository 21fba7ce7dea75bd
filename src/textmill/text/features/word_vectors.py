"""Vectors of words from a text file, as GloVe, word2vec and fastText publish them."""

import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from textmill.errors import DataError, UserError
from textmill.runtime.files import opened

LONGEST_WORD, LONGEST_NUMBER = 1 << 16, 64
"""Bytes of a word and of one of its numbers, with what is between them; many times the usual."""


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The vectors of the words of a vocabulary that a file has."""

    ids: NDArray[np.int64]
    """*Shape:* ``[N]``, rising."""
    vectors: NDArray[np.float32]
    """*Shape:* ``[N, dim]``."""
    known: int
    """Words of the vocabulary."""
    lines: int
    """Vectors in the file."""

    @property
    def coverage(self) -> str:
        share = 100 * len(self.ids) / self.known
        return (
            f"{len(self.ids):,} of {self.known:,} words have one of its {self.lines:,} vectors "
            f"({share:.1f} %)"
        )


def read_word_vectors(
    path: Path, words: Mapping[str, int], dim: int, *, lowercase: bool = False
) -> WordVectors:
    r"""Reads a file with a word and its numbers in each line, divided by spaces or tabs.

    A first line of two whole numbers is the header of word2vec: how many vectors there are, and of
    how many numbers. A word may have spaces in it, as some of GloVe have; of a word that is there
    twice the first vector counts.
    """
    exact: dict[int, NDArray[np.float32]] = {}
    other: dict[int, NDArray[np.float32]] = {}
    count, announced = 0, None
    for number, line in _lines(path, longest=LONGEST_WORD + LONGEST_NUMBER * dim):
        parts = line.split()
        if number == 1 and len(parts) == 2 and all(part.isdecimal() for part in parts):
            announced = int(parts[0])
            _check_dim(path, number, int(parts[1]), dim)
            continue
        word, numbers = _divided(path, number, line, dim)
        count += 1
        place, found = words.get(word), exact
        if place is None and lowercase:
            place, found = words.get(word.lower()), other
        if place is not None and place not in found:
            found[place] = _vector(path, number, word, numbers)
    if announced is not None and count != announced:
        raise DataError(
            f"{path}: its first line says {announced:,} vectors, but it has {count:,}. Get the "
            "file again: it may have been cut off."
        )
    vectors = {**other, **exact}
    if not vectors:
        raise UserError(
            f"{path}: none of its {count:,} words is among the {len(words):,} of the vocabulary. "
            "Is it of this language, and written as the tokenizer writes words?"
        )
    ids = np.array(sorted(vectors), dtype=np.int64)
    return WordVectors(ids, np.stack([vectors[i] for i in ids.tolist()]), len(words), count)


def _lines(path: Path, *, longest: int) -> Iterator[tuple[int, str]]:
    """Lines that are not empty, with their numbers; none of more than ``longest`` bytes is read."""
    with opened(path, _unreadable, name=str(path), links=True) as (file, _):
        for number in itertools.count(1):
            raw = file.readline(longest + 1)
            if not raw:
                return
            if len(raw) > longest:
                raise DataError(
                    f"{path}, line {number}: wanted a word and its vector, found more than "
                    f"{longest:,} bytes without an end of line."
                )
            try:
                line = raw.decode().strip("\r\n \t")
            except UnicodeDecodeError as error:
                raise DataError(
                    f"{path}, line {number}: not UTF-8 (byte {error.start} of the line)."
                ) from None
            if line:
                yield number, line


def _unreadable(why: str) -> UserError:
    return UserError(f"The word vectors cannot be read. {why}.")


def _divided(path: Path, number: int, line: str, dim: int) -> tuple[str, list[str]]:
    """A line's word and its numbers; the first vector tells how many numbers the file's have."""
    parts = line.replace("\t", " ").rsplit(" ", dim)
    if len(parts) == dim + 1 and not _ends_in_number(parts[0]):
        return parts[0], parts[1:]
    _check_dim(path, number, len(line.split()) - 1, dim)
    raise DataError(f"{path}, line {number}: wanted a word and {dim} numbers, found {line!r:.80}.")


def _ends_in_number(word: str) -> bool:
    """Whether what would be a word of several parts ends in a number: the line has one too many."""
    if " " not in word:
        return False
    try:
        float(word.rsplit(" ", 1)[1])
    except ValueError:
        return False
    return True


def _check_dim(path: Path, number: int, found: int, dim: int) -> None:
    if found != dim and number == 1:
        raise UserError(
            f"{path}, line {number}: its vectors are of size {found}, but embedding.dim is {dim}. "
            f"Set embedding.dim={found} to use them."
        )


def _vector(path: Path, number: int, word: str, numbers: list[str]) -> NDArray[np.float32]:
    try:
        vector = np.array([float(part) for part in numbers], dtype=np.float32)
    except ValueError:
        vector = np.array([np.nan], dtype=np.float32)
    if np.isfinite(vector).all():
        return vector
    raise DataError(
        f"{path}, line {number}: wanted {len(numbers)} finite numbers for {word!r:.80}, found "
        f"{' '.join(numbers)!r:.80}."
    )
