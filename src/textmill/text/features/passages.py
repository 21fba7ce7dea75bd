"""Texts as tokens that know which characters they are of, by any tokenizer."""

from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

from textmill.text.tokenizers.tokenizer import Tokenizer
from textmill.text.tokenizers.word_tokenizer import WordTokenizer

Place = tuple[int, int]

LONGEST = 64
"""Pieces of a word that are looked for one by one, which takes the square of their number."""


class TokenizedPassage(tuple[str, ...]):
    """The tokens of a text, as they are written in it.

    Attributes:
        ids: The id of each.
        places: Where each begins in the text, and ends; both rise from token to token.
    """

    ids: Sequence[int]
    places: Sequence[Place]

    @classmethod
    def of(cls, text: str, ids: Sequence[int], places: Sequence[Place]) -> "TokenizedPassage":
        made = cls(text[start:end] for start, end in places)
        made.ids, made.places = ids, places
        return made


def read_passages(tokenizer: Tokenizer, texts: Sequence[str]) -> list[TokenizedPassage]:
    """The passages of texts; equal texts, and equal words, are read once.

    A tokenizer of words knows the places of its tokens. Any other encodes each word, split at white
    space, by itself; decoding the word's first pieces, one more each time, gives the place of each.
    If they decode to another text, because the word has an unknown character, every piece has the
    place of the whole word. A word of more than 64 pieces is divided equally among them.
    """
    distinct = [*dict.fromkeys(texts)]
    if isinstance(tokenizer, WordTokenizer):
        first, get = tokenizer.vocab_info.unk_idx, tokenizer.numbers.get
        found = {
            text: TokenizedPassage.of(
                text, [get(word, first) for word in tokenizer.words(text)], tokenizer.places(text)
            )
            for text in distinct
        }
    else:
        words = WordTokenizer(WordTokenizer.Config(words=()))
        places = {text: words.places(text) for text in distinct}
        table = _pieces(tokenizer, (text[a:b] for text in distinct for a, b in places[text]))
        found = {text: _joined(text, places[text], table) for text in distinct}
    return [found[text] for text in texts]


Pieces = tuple[list[int], list[Place]]


def _joined(text: str, words: Sequence[Place], table: Mapping[str, Pieces]) -> TokenizedPassage:
    ids: list[int] = []
    places: list[Place] = []
    for start, end in words:
        pieces, inside = table[text[start:end]]
        ids += pieces
        places += [(start + first, start + after) for first, after in inside]
    return TokenizedPassage.of(text, ids, places)


def _pieces(tokenizer: Tokenizer, words: Iterable[str]) -> dict[str, Pieces]:
    """The ids of each word, and where in it each of them is."""
    distinct = [*dict.fromkeys(words)]
    info, decoder, before = tokenizer.vocab_info, tokenizer.create_decoder(), tokenizer.before_word
    marks = {info.bos_idx, info.eos_idx}
    rows = [
        [number for number in row.tolist() if number not in marks] or [info.unk_idx]
        for row in tokenizer.create_encoder().batch([f"{before}{word}" for word in distinct])
    ]
    short = [row for row in rows if len(row) <= LONGEST]
    beginnings = iter(decoder.batch([row[: n + 1] for row in short for n in range(len(row))]))
    table = {}
    for word, row in zip(distinct, rows, strict=True):
        size = len(word)
        if len(row) > LONGEST:
            ends = [(n + 1) * size // len(row) for n in range(len(row))]
        else:  # without spaces: some decoders put one before a mark of punctuation
            ends = [len("".join(next(beginnings).split())) for _ in row]
        table[word] = row, _places(ends, size)
    return table


def _places(ends: Sequence[int], length: int) -> list[Place]:
    """Where the pieces of a word are, each of one character at least.

    >>> _places([2, 3], 3), _places([0, 1, 3], 3), _places([2, 4], 3)
    ([(0, 2), (2, 3)], [(0, 1), (0, 1), (1, 3)], [(0, 3), (0, 3)])
    """
    if ends[-1] != length or any(a > b for a, b in pairwise(ends)):
        return [(0, length)] * len(ends)
    starts = [min(start, length - 1) for start in (0, *ends[:-1])]
    return [(start, max(end, start + 1)) for start, end in zip(starts, ends, strict=True)]
